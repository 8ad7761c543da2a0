"""
Name the licences of all that a user gets: ``make licences``, ``make check-licences``.

pip-licenses reads them in an environment with the wheel and nothing else.  The check
fails when a licence does not go with Apache-2.0, and when docs/licences.md, which
``--write`` makes anew, says anything else.
"""

import json
import re
import subprocess
import sys

from release.pack import ROOT

PAGE = ROOT / "docs" / "licences.md"
BEGIN, END = "<!-- made by `make licences` -->\n", "<!-- end of what is made -->"
# Words of package metadata that let a work be used beside Apache-2.0 without more than a notice.
FREE = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD License",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC License (ISCL)",
    "MIT",
    "MIT License",
    "MIT-CMU",
    "PSF-2.0",
    "Python Software Foundation License",
    "Zlib",
}


def is_free(licence: str) -> bool:
    """
    Whether a licence goes with Apache-2.0: all that are joined, or one of those to choose from.

    Examples
    --------
    >>> is_free("BSD-3-Clause AND Zlib"), is_free("GPL-3.0-only OR MIT"), is_free("MIT AND GPL-3.0-only")
    (True, True, False)
    """
    # Of an expression with brackets more is not known: a person has to look.
    return any(set(choice.split(" AND ")) <= FREE for choice in licence.split(" OR "))


def licences() -> dict[str, str]:
    """Licence of every package that comes with ours, by its name."""
    words = [f"--python={ROOT / 'build' / 'runtime' / 'bin' / 'python'}", "--from=mixed", "--format=json"]
    done = subprocess.run(
        [sys.executable, "-m", "piplicenses", *words], capture_output=True, text=True, check=True
    )
    found = {each["Name"]: each["License"].replace("; ", " AND ") for each in json.loads(done.stdout)}
    return {name: found[name] for name in sorted(found, key=str.lower) if name != "sapp-ppb"}


def main() -> None:
    """Write the page, or hold it against what is installed."""
    found = licences()
    rows = "".join(f"| {name} | {licence} |\n" for name, licence in found.items())
    made = f"{BEGIN}| package | licence |\n|---|---|\n{rows}{END}"
    page = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv[1:]:
        page = re.sub(f"{BEGIN}.*{END}", lambda _: made, page, flags=re.DOTALL)
        PAGE.write_text(page, encoding="utf-8")
    faults = [
        f"{name} has the licence {licence!r}, of which it is not known that it goes with Apache-2.0"
        for name, licence in found.items()
        if not is_free(licence)
    ]
    if made not in page:
        faults.append("docs/licences.md is not what is installed; run make licences and read what changed")
    if faults:
        sys.exit("\n".join(faults))
    print(f"the licences of {len(found)} packages go with Apache-2.0, and docs/licences.md names them")


if __name__ == "__main__":
    main()
