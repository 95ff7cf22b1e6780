"""Vector instructions for compiled code: sixteen, eight or four numbers side by side.

Numba does not keep a row of an array in a register over a loop; these functions do. Each says in
its docstring what it does as a plain loop, which is what the tests compare it with.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_INDEX = ir.IntType(64)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    return context.make_array(array_type)(context, builder, array).data


def _load(builder: Any, pointer: Any, index: Any) -> Any:
    return builder.load(builder.gep(pointer, [index]))


def make_lane_functions(lanes: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return add_products and add_multiples for rows of so many float32 numbers."""
    vector = ir.VectorType(ir.FloatType(), lanes)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

    def spread(builder: Any, number: Any) -> Any:
        single = builder.insert_element(
            ir.Constant(vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
        )
        return builder.shuffle_vector(single, single, mask)

    def row_pointer(builder: Any, table: Any, indices: Any, place: Any) -> Any:
        row = builder.zext(_load(builder, indices, place), _INDEX)
        first = builder.gep(table, [builder.mul(row, ir.Constant(_INDEX, lanes))])
        return builder.bitcast(first, vector.as_pointer())

    def multiply_add(builder: Any, one: Any, other: Any, total: Any) -> Any:
        product = builder.fmul(one, other, flags=("contract",))
        return builder.fadd(product, total, flags=("contract",))

    def loop(builder: Any, start: Any, end: Any) -> Any:
        return cgutils.for_range_slice(builder, start, end, ir.Constant(_INDEX, 1), inc=True)

    @intrinsic
    def add_products(typing: Any, table: Any, indices: Any, data: Any, start: Any, end: Any, sums: Any) -> Any:  # fmt: skip # noqa: E501
        """For p in range(start, end): sums[:lanes] += data[p] * table[indices[p] * lanes :]."""
        signature = types.void(table, indices, data, types.int64, types.int64, sums)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointers = [
                _pointer(context, builder, signature.args[i], arguments[i]) for i in (0, 1, 2, 5)
            ]
            table, indices, data = pointers[:3]
            sums = builder.bitcast(pointers[3], vector.as_pointer())
            register = cgutils.alloca_once(builder, vector)
            builder.store(builder.load(sums, align=4), register)
            with loop(builder, arguments[3], arguments[4]) as (p, _):
                row = builder.load(row_pointer(builder, table, indices, p), align=4)
                value = spread(builder, _load(builder, data, p))
                total = multiply_add(builder, value, row, builder.load(register))
                builder.store(total, register)
            builder.store(builder.load(register), sums, align=4)
            return context.get_dummy_value()

        return signature, generate

    @intrinsic
    def add_multiples(typing: Any, table: Any, indices: Any, data: Any, start: Any, end: Any, steps: Any) -> Any:  # fmt: skip # noqa: E501
        """For p in range(start, end): table[indices[p] * lanes :] += data[p] * steps[:lanes]."""
        signature = types.void(table, indices, data, types.int64, types.int64, steps)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointers = [
                _pointer(context, builder, signature.args[i], arguments[i]) for i in (0, 1, 2, 5)
            ]
            table, indices, data = pointers[:3]
            steps = builder.load(builder.bitcast(pointers[3], vector.as_pointer()), align=4)
            with loop(builder, arguments[3], arguments[4]) as (p, _):
                row = row_pointer(builder, table, indices, p)
                value = spread(builder, _load(builder, data, p))
                total = multiply_add(builder, value, steps, builder.load(row, align=4))
                builder.store(total, row, align=4)
            return context.get_dummy_value()

        return signature, generate

    return add_products, add_multiples


def _prefetch(typing: Any, array: Any, place: Any) -> Any:
    """Ask for array[place] to be brought near; no effect on any result."""
    signature = types.void(array, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments[0])
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        declared = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, declared, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(pointer, [arguments[1]]), byte)
        to_read, keep, data = (ir.Constant(number, n) for n in (0, 3, 1))
        builder.call(function, [place, to_read, keep, data])
        return context.get_dummy_value()

    return signature, generate


prefetch: Callable[..., None] = intrinsic(_prefetch)
