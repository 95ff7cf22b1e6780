"""Other libraries, each in an environment of its own, because their requirements exclude ours."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REQUIREMENTS = {
    "pecos": ["libpecos==1.2.8", "torch==2.13.0", "numpy<2"],
    "napkinxc": ["napkinxc==0.7.2", "numpy<2", "scipy"],
}


def python_of(peer: str, work: Path) -> Path:
    """Return the Python that has a peer installed, or our own for "spacy_xel"."""
    if peer == "spacy_xel":
        return Path(sys.executable)
    folder = work / "peers" / peer
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing {peer} in {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", *REQUIREMENTS[peer]]
        subprocess.run(install, check=True)
        (folder / "installed").touch()
    return python


def run_script(peer: str, work: Path, script: Path, *arguments: object) -> dict[str, Any]:
    """Run a script under a peer's Python; return the JSON of its last line."""
    command = [python_of(peer, work), script, *arguments]
    done = subprocess.run(
        [str(part) for part in command], check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
