"""What the benchmarks share: where the data is, peak memory of a step, results as JSON."""

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("XEL_DATA", ROOT.parent / "shared" / "data"))
RESULTS = ROOT / "benchmarks" / "results"


def parse_arguments(description: str) -> argparse.Namespace:
    """Return the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--work", type=Path, default=ROOT / ".benchmarks", help="scratch folder")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    if not DATA.is_dir():
        parser.exit(1, f"no real data at {DATA}; set XEL_DATA to the folder that has it\n")
    return arguments


def best_of(repeats: int, *functions: Callable[[], object]) -> list[float]:
    """Return each function's best time in seconds, their runs interleaved."""
    times = [float("inf")] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def run_measured(code: str, *arguments: object) -> dict[str, Any]:
    """Run Python code in a process of its own; return the JSON it prints and its peak memory."""
    wrapper = (
        "import json, re, sys, time\n"
        "from pathlib import Path\n"
        f"{code}\n"
        # Not getrusage, whose maximum a process inherits from the one that started it.
        "status = Path('/proc/self/status').read_text()\n"
        "peak = int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) / 1024\n"
        "print('RESULT', json.dumps({**result, 'peak_mb': round(peak, 1)}))\n"
    )
    command = [sys.executable, "-c", wrapper, *map(str, arguments)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    line = next(line for line in output.splitlines() if line.startswith("RESULT"))
    result: dict[str, Any] = json.loads(line.removeprefix("RESULT"))
    return result


def write_result(name: str, seed: int, data: list[Path], result: dict[str, Any]) -> None:
    """Write a benchmark's figures with everything needed to repeat it, and print them."""
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    packages = ("spacy", "numpy", "numba", "scipy")
    content = {
        "benchmark": name,
        "commit": git.stdout.strip(),
        "seed": seed,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "versions": {package: version(package) for package in packages},
        "data": {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in data},
        "result": result,
    }
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(content, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf8")
    print(text)
