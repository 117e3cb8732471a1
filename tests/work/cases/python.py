"""Python: virtual environments, pip from wheels, tox, pre-commit, tests, and what programs do with processes and sockets."""

from case import Case

# A wheel with a program, made by hand: a build would take longer, and say nothing more.
WHEEL = r"""
python3 - <<'EOP'
import zipfile
for name in ("hello_box", "other_box"):
    info, files = f"{name}-1.0.dist-info", {}
    files[f"{name}.py"] = "import sys\n\n\ndef main():\n    print('hello from', sys.prefix)\n"
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name.replace('_', '-')} = {name}:main\n"
    files[f"{info}/RECORD"] = "".join(f"{one},,\n" for one in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for one, text in files.items():
            archive.writestr(zipfile.ZipInfo(one), text)  # of one date
EOP
mkdir wheels; mv *.whl wheels
"""
# Made once: it takes ten seconds, and is the same every time.
VENV = WHEEL + "[ -e /var/tmp/kept-venv ] || { python3 -m venv .venv; mv .venv /var/tmp/kept-venv; }; cp -a /var/tmp/kept-venv .venv\n"
SITE_VENV = "[ -e /var/tmp/kept-site ] || { python3 -m venv --system-site-packages .venv; mv .venv /var/tmp/kept-site; }; cp -a /var/tmp/kept-site .venv\n"
INSTALL = "install --quiet --no-index --find-links wheels hello-box"
PROJECT = r"""
mkdir -p mypkg tests
echo 'def double(x): return 2 * x' >mypkg/__init__.py
printf 'from mypkg import double\n\n\ndef test_double():\n    assert double(2) == 4\n' >tests/test_double.py
printf '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n[project]\nname = "mypkg"\nversion = "1.0"\n[tool.setuptools]\npackages = ["mypkg"]\n' >pyproject.toml
"""
EXTENSION = r"""
printf '#include <Python.h>\nstatic PyObject *one(PyObject *s, PyObject *a) { return PyLong_FromLong(1); }\nstatic PyMethodDef m[] = {{"one", one, METH_NOARGS, 0}, {0}};\n'\
'static struct PyModuleDef d = {PyModuleDef_HEAD_INIT, "ext", 0, -1, m};\nPyMODINIT_FUNC PyInit_ext(void) { return PyModule_Create(&d); }\n' >ext.c
printf 'from setuptools import setup, Extension\nsetup(name="ext", version="1.0", ext_modules=[Extension("ext", ["ext.c"])])\n' >setup.py
"""
# A hook that is built by what it brings along: newer environments come without setuptools, and there is no network.
HOOK = r"""
git init -q hook
printf -- '- id: say\n  name: say\n  entry: say\n  language: python\n  always_run: true\n  pass_filenames: false\n  verbose: true\n' >hook/.pre-commit-hooks.yaml
printf '[build-system]\nrequires = []\nbuild-backend = "back"\nbackend-path = ["."]\n' >hook/pyproject.toml
cat >hook/back.py <<'EOP'
import zipfile


def build_wheel(directory, settings=None, metadata=None):
    info, files = "say-1.dist-info", {"say.py": "def main():\n    print('said')\n"}
    files[f"{info}/METADATA"] = "Metadata-Version: 2.1\nName: say\nVersion: 1\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = "[console_scripts]\nsay = say:main\n"
    files[f"{info}/RECORD"] = "".join(f"{one},,\n" for one in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(f"{directory}/say-1-py3-none-any.whl", "w") as archive:
        for one, text in files.items():
            archive.writestr(one, text)
    return "say-1-py3-none-any.whl"
EOP
git -C hook add .; git -C hook commit -qm hook; git init -q
printf 'repos:\n- repo: ./hook\n  rev: %s\n  hooks:\n  - id: say\n' $(git -C hook rev-parse HEAD) >.pre-commit-config.yaml; git add .pre-commit-config.yaml; git commit -qm start
"""
NOT_ALIKE = (".venv/*", ".venv", "*.egg-info*", "build/*", "build")

CASES = [
    Case("a virtual environment is made and its Python runs", "python3 -m venv .venv; .venv/bin/python -c 'import sys; print(sys.prefix)'", ignored=NOT_ALIKE),
    Case("a virtual environment that was made by another name of the project (~/w) works", ".venv/bin/pip --version | cut -d' ' -f1; "
         ". .venv/bin/activate; python -c 'import sys; print(sys.prefix)'",
         "ln -s ~/projects/work ~/w; python3 -m venv /home/alice/w/.venv", ignored=NOT_ALIKE),
    Case("pip of a virtual environment, by its path", f".venv/bin/pip {INSTALL}; .venv/bin/hello-box", VENV, ignored=NOT_ALIKE),
    Case("python -m pip of a virtual environment, by its path", f".venv/bin/python -m pip {INSTALL}; .venv/bin/hello-box", VENV, ignored=NOT_ALIKE),
    Case("pip in an activated virtual environment", f". .venv/bin/activate; pip {INSTALL}; hello-box", VENV, ignored=NOT_ALIKE),
    Case("the virtual environment that is active outside is active inside", f"python -c 'import sys; print(sys.prefix)'; pip {INSTALL}; hello-box", VENV,
         ignored=NOT_ALIKE, variables=(("PATH", "/home/alice/projects/work/.venv/bin:/usr/local/bin:/usr/bin:/bin"),)),
    Case("pip in a virtual environment that sh activates", f"sh -c '. .venv/bin/activate; pip {INSTALL}; hello-box'", VENV, ignored=NOT_ALIKE),
    Case("make fills a virtual environment", "make -s run", VENV +
         f"printf '.venv/bin/hello-box:\\n\\t.venv/bin/pip {INSTALL}\\nrun: .venv/bin/hello-box\\n\\t.venv/bin/hello-box\\n' >Makefile", "make", ignored=NOT_ALIKE),
    Case("requirements are installed into a virtual environment",
         ".venv/bin/pip install --quiet --no-index --find-links wheels -r requirements.txt; .venv/bin/other-box; .venv/bin/pip freeze",
         VENV + "printf 'hello-box==1.0\\nother-box\\n' >requirements.txt", ignored=NOT_ALIKE),
    Case("pip installs into a directory (--target)", f"pip {INSTALL} --target lib; PYTHONPATH=lib python3 -c 'import hello_box; print(hello_box.__file__)'", WHEEL),
    Case("pip installs below a prefix (--prefix)", f"pip {INSTALL} --prefix pre; find pre -name hello-box", WHEEL +
         "mkdir -p ~/.config/pip; printf '[global]\\nbreak-system-packages = true\\n' >~/.config/pip/pip.conf"),
    Case("pip installs for the user (--user)", f"pip {INSTALL} --user; ~/.local/bin/hello-box; ls ~/.local/bin", WHEEL +
         "mkdir -p ~/.config/pip; printf '[global]\\nbreak-system-packages = true\\n' >~/.config/pip/pip.conf"),
    Case("pip outside of a virtual environment installs for the user by itself", f"pip {INSTALL} 2>/dev/null; ~/.local/bin/hello-box", WHEEL +
         "mkdir -p ~/.config/pip; printf '[global]\\nbreak-system-packages = true\\n' >~/.config/pip/pip.conf"),
    Case("pip makes a wheel of a project", ".venv/bin/pip wheel -q --no-index --no-build-isolation --no-deps -w out . ; ls out", PROJECT + SITE_VENV, ignored=(*NOT_ALIKE,
         "out/*")),
    Case("a project is installed for editing (pip install -e)",
         ".venv/bin/pip install -q --no-index --no-build-isolation -e . ; .venv/bin/python -c 'import mypkg; print(mypkg.__file__)'", PROJECT + SITE_VENV, ignored=NOT_ALIKE),
    Case("an extension in C is built and imported", "python3 setup.py -q build_ext --inplace 2>/dev/null; python3 -c 'import ext; print(ext.one())'", EXTENSION,
         "gcc", ignored=(*NOT_ALIKE, "*.so")),
    Case("tox runs the tests of a project", "tox -q 2>&1 | grep -E 'passed|congratulations' | sed 's/ *(.*//;s/ in .*//'", PROJECT +
         "printf '[tox]\\nenvlist = py3\\nskipsdist = true\\nskip_install = true\\n[testenv]\\nsitepackages = true\\nskip_install = true\\ncommands = "
         "python -m pytest -q -p no:cacheprovider tests\\nsetenv = PYTHONPATH = .\\n' >tox.ini", "tox", ignored=(".tox", ".tox/*")),
    Case("tox installs what a project needs from wheels", "tox -q 2>&1 | grep '^hello'", WHEEL +
         "printf '[tox]\\nenvlist = py3\\nskipsdist = true\\nno_package = true\\n[testenv]\\nskip_install = true\\ninstall_command = python -m pip "
         "install --no-index --find-links wheels {opts} {packages}\\ndeps = hello-box\\ncommands = hello-box\\n' >tox.ini", "tox", ignored=(".tox",
         ".tox/*")),
    Case("pre-commit runs a hook of the system", "git commit -qam x 2>&1 | sed 's/\\.\\.*/../'; git log -1 --format=%s",
         "git init -q; printf 'repos:\\n- repo: local\\n  hooks:\\n  - {id: say, name: say, entry: echo, language: system}\\n' "
         ">.pre-commit-config.yaml; echo a >a; git add .; git commit -qm start; pre-commit install >/dev/null; echo b >>a", "pre-commit", ignored=(
         ".git/hooks/pre-commit",)),
    Case("pre-commit makes a Python hook's environment", "pre-commit run --all-files >log 2>&1 || { tail -20 log; exit 1; }; grep -x said log; rm log", HOOK, "pre-commit", timeout=200),
    Case("virtualenv makes an environment and fills it", f"virtualenv -q --no-download venv; venv/bin/pip {INSTALL}; venv/bin/hello-box", WHEEL,
         "virtualenv", ignored=("venv", "venv/*")),
    Case("a Unix socket below pytest's tmp_path has a path that is short enough", "python3 -m pytest -q -p no:cacheprovider t.py | sed 's/ in .*//'",
         "printf 'import socket\\n\\ndef test_a_server_listens_and_answers(tmp_path):\\n    (tmp_path / \"run\").mkdir()\\n    socket.socket(socket.AF_UNIX).bind(str(tmp_path / \"run/server.sock\"))\\n' >t.py", "python3"),
    Case("pytest runs tests in parallel processes and temporary directories", "python3 -m pytest -q -p no:cacheprovider t.py | sed 's/ in .*//'",
         "printf 'import multiprocessing as m\\n\\n\\ndef test_pool(tmp_path):\\n    (tmp_path / \"x\").write_text(\"x\")\\n    with m.Pool(2) as "
         "p:\\n        assert p.map(abs, [-1, -2]) == [1, 2]\\n' >t.py"),
    Case("unittest finds tests", "python3 -m unittest -q 2>&1 | tail -1", PROJECT +
         "printf 'import unittest\\n\\n\\nclass T(unittest.TestCase):\\n    def test_x(self):\\n        pass\\n' >test_x.py"),
    Case("multiprocessing shares memory, locks and queues",
         "python3 -c \"\nfrom multiprocessing import Process, Queue, Lock, Value, shared_memory\ndef f(q, v, l):\n    with l: v.value += 1\n    "
         "q.put(1)\nq, v, l = Queue(), Value('i', 0), Lock()\np = [Process(target=f, args=(q, v, l)) for _ in range(4)]\n[x.start() for x in p]; "
         "print(sum(q.get() for _ in p)); [x.join() for x in p]; print(v.value)\ns = shared_memory.SharedMemory(create=True, size=100000); "
         "s.buf[0] = 7; print(s.buf[0]); s.close(); s.unlink()\n\""),
    Case("a process pool by spawn and forkserver", "python3 pool.py",
         "printf 'import concurrent.futures as c, multiprocessing as m\\nif __name__ == \"__main__\":\\n    for how in (\"spawn\", "
         "\"forkserver\"):\\n        with c.ProcessPoolExecutor(2, m.get_context(how)) as p:\\n            print(how, list(p.map(abs, [-3, 4])))\\n' "
         ">pool.py"),
    Case("http.server answers on localhost",
         "python3 -m http.server -b 127.0.0.1 8765 >/dev/null 2>&1 & until curl -sf http://127.0.0.1:8765/f; do sleep 0.1; done; kill $!",
         "echo served >f", "curl"),
    Case("sockets: TCP, UDP, Unix, IPv6 and a pair",
         "python3 -c \"\nimport socket as s\nfor f, a in ((s.AF_INET, '127.0.0.1'), (s.AF_INET6, '::1')):\n    l = s.socket(f); l.bind((a, 0)); "
         "l.listen(); c = s.create_connection(l.getsockname()[:2]); c.send(b'x'); print(l.accept()[0].recv(1))\nl = s.socket(s.AF_UNIX); "
         "l.bind('sock'); l.listen(); c = s.socket(s.AF_UNIX); c.connect('sock'); print('unix')\na, b = s.socketpair(); a.send(b'p'); "
         "print(b.recv(1))\nu = s.socket(s.AF_INET, s.SOCK_DGRAM); u.bind(('127.0.0.1', 0)); u.sendto(b'u', u.getsockname()); print(u.recv(1))\n\"; "
         "rm sock"),
    Case("asyncio starts programs and serves",
         "python3 -c \"\nimport asyncio\nasync def main():\n    p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=-1); "
         "print(await p.communicate())\n    async def h(r, w): w.write(b'ok'); await w.drain(); "
         "w.close()\n    s = await asyncio.start_server(h, '127.0.0.1', 0)\n    r, w = await asyncio.open_connection(*s.sockets[0].getsockname()); "
         "print(await r.read()); w.close()\nasyncio.run(main())\n\""),
    Case("a user's site directory and PYTHONPATH are as Python says",
         "python3 -c 'import site, sys; print(site.ENABLE_USER_SITE, site.getuserbase()); print(sys.flags.isolated)'; "
         "PYTHONPATH=lib python3 -c 'import m; print(m.x)'", "mkdir lib; echo 'x = 1' >lib/m.py"),
    Case("a Python that a version manager installed (uv) runs in a virtual environment", ".venv/bin/python -c 'print(1)'",
         "p=~/.local/share/uv/python/cpython-3.12.1-linux-x86_64-gnu/bin; mkdir -p $p .venv/bin; "
         "printf '#!/bin/sh\\nexec /usr/bin/python3 \"$@\"\\n' >$p/python3.12; chmod +x $p/python3.12; ln -s $p/python3.12 .venv/bin/python; "
         "printf 'home = %s\\nversion = 3.12.1\\n' $p >.venv/pyvenv.cfg"),
    Case("a Python of pyenv runs in a virtual environment", ".venv/bin/python -c 'print(1)'",
         "p=~/.pyenv/versions/3.12.1/bin; mkdir -p $p .venv/bin; printf '#!/bin/sh\\nexec /usr/bin/python3 \"$@\"\\n' >$p/python3.12; "
         "chmod +x $p/python3.12; ln -s $p/python3.12 .venv/bin/python; printf 'home = %s\\nversion = 3.12.1\\n' $p >.venv/pyvenv.cfg"),
    Case("a Python of conda (miniforge) runs", "~/miniforge3/envs/w/bin/python -c 'print(1)'",
         "p=~/miniforge3/envs/w/bin; mkdir -p $p ~/miniforge3/envs/w/conda-meta; printf '#!/bin/sh\\nexec /usr/bin/python3 \"$@\"\\n' >$p/python; chmod +x $p/python"),
    Case("a tool that uv installed runs by its name", "hello-uv",
         "d=~/.local/share/uv/tools/hello-uv/bin; mkdir -p $d ~/.local/bin; printf '#!/bin/sh\\necho uv\\n' >$d/hello-uv; chmod +x $d/hello-uv; "
         "ln -s $d/hello-uv ~/.local/bin/"),
]
