import inspect
import subprocess
import sys

import cycleback.alignment as alignment


def test_all_names_exist_and_are_documented():
    assert sorted(alignment.__all__) == alignment.__all__
    assert all(inspect.getdoc(getattr(alignment, name)) for name in alignment.__all__)


def test_importing_loads_neither_torch_nor_numba_nor_scipy():
    code = "import sys, cycleback.alignment; print({'torch', 'numba', 'scipy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
