"""Generates types with openapi-typescript and checks that they have every operation. Usage: check_types.py
FOLDER-OF-PROGRAMS."""

import re
import sys
import tempfile
from pathlib import Path

from document import PATH, operations, run


def main():
    programs = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory() as folder:
        types = Path(folder) / "api.ts"
        run([programs / "openapi-typescript", PATH, "--output", types])
        run([programs / "tsc", "--noEmit", "--strict", types])
        interface = types.read_text().split("export interface operations {")[1]
        generated = re.findall(r"^    (\w+): \{$", interface, re.MULTILINE)
    missing = set(operations()) - set(generated)
    if missing:
        sys.exit(f"openapi-typescript left out: {', '.join(sorted(missing))}")
    print(f"openapi-typescript: {len(generated)} operations")


if __name__ == "__main__":
    main()
