"""Toolchains, environments and caches that people have in their homes in 2026, laid out as their managers lay them out."""

from case import Case, saying, script
from reasons import READ_ONLY_TOOLCHAINS

# What it is, and where its program lies; each says its own name.
PROGRAMS = (
    ("a Python of mise", "~/.local/share/mise/installs/python/3.12.1/bin/python3"),
    ("a shim of mise", "~/.local/share/mise/shims/python3"),
    ("a shim of pyenv", "~/.pyenv/shims/python3"),
    ("a shim of rbenv", "~/.rbenv/shims/ruby"),
    ("a program of asdf", "~/.asdf/installs/nodejs/24.1.0/bin/node"),
    ("an environment of poetry", "~/.cache/pypoetry/virtualenvs/app-abc-py3.12/bin/python"),
    ("an environment of pipenv", "~/.local/share/virtualenvs/app-abc/bin/python"),
    ("an environment of virtualenvwrapper", "~/.virtualenvs/app/bin/python"),
    ("an environment of hatch", "~/.local/share/hatch/env/virtual/app/abc/app/bin/python"),
    ("a Python of rye", "~/.rye/py/cpython@3.12.1/bin/python3"),
    ("a micromamba environment", "~/micromamba/envs/app/bin/python"),
    ("a node of nodenv", "~/.nodenv/versions/24.1.0/bin/node"),
    ("a global program of pnpm", "~/.local/share/pnpm/tool"),
    ("a global program of npm's prefix", "~/.npm-global/bin/tool"),
    ("a Go SDK in the home", "~/sdk/go1.25.0/bin/go"),
    ("a program that go install made", "~/go/bin/gopls"),
    ("a Go of goenv", "~/.goenv/versions/1.25.0/bin/go"),
    ("a program that cargo install made", "~/.cargo/bin/just"),
    ("a JDK of jenv", "~/.jenv/versions/21/bin/java"),
    ("a JDK that Gradle fetched", "~/.gradle/jdks/temurin-21/bin/java"),
    ("a Scala of coursier", "~/.local/share/coursier/bin/scala"),
    ("a Haskell of stack", "~/.stack/programs/x86_64-linux/ghc-9.8/bin/ghc"),
    ("an Elixir of kiex", "~/.kiex/elixirs/elixir-1.18/bin/elixir"),
    ("an Erlang of kerl", "~/.local/share/kerl/28/bin/erl"),
    ("a Dart and Flutter SDK", "~/flutter/bin/flutter"),
    ("an Android SDK", "~/Android/Sdk/platform-tools/adb"),
    ("a Zig of zvm", "~/.zvm/bin/zig"),
    ("a Swift of swiftly", "~/.local/share/swiftly/toolchains/6.1/usr/bin/swift"),
    ("an OCaml of opam", "~/.opam/default/bin/ocaml"),
    ("a Julia of juliaup", "~/.julia/juliaup/julia-1.11/bin/julia"),
    ("a profile of nix", "~/.nix-profile/bin/tool"),
    ("a Homebrew in the home", "~/.linuxbrew/bin/brew"),
    ("a program of pixi", "~/.pixi/bin/tool"),
    ("a script of the user's own", "~/bin/tool"),
    ("a plugin of proto", "~/.proto/plugins/tool"),
    ("a Flutter that fvm installed", "~/.fvm_flutter/bin/fvm"),
    ("forge", "~/.foundry/bin/forge"),
    ("solana", "~/.local/share/solana/install/active_release/bin/solana"),
    ("a Python of PlatformIO", "~/.platformio/penv/bin/pio"),
    ("a compiler of PlatformIO", "~/.platformio/packages/toolchain-xtensa/bin/gcc"),
    ("a compiler of ESP-IDF", "~/.espressif/tools/xtensa-esp-elf/bin/gcc"),
    ("a TeX in the home", "~/.TinyTeX/bin/x86_64-linux/tlmgr"),
)
CACHES = (
    ("ccache", "~/.cache/ccache"),
    ("sccache", "~/.cache/sccache"),
    ("go's builds", "~/.cache/go-build"),
    ("yarn", "~/.cache/yarn"),
    ("yarn berry", "~/.yarn/berry/cache"),
    ("bun", "~/.bun/install/cache"),
    ("deno", "~/.cache/deno"),
    ("pre-commit", "~/.cache/pre-commit"),
    ("hugging face models", "~/.cache/huggingface"),
    ("playwright's browsers", "~/.cache/ms-playwright"),
    ("electron", "~/.cache/electron"),
    ("composer", "~/.cache/composer"),
    ("conan", "~/.conan2/p"),
    ("vcpkg", "~/.cache/vcpkg"),
    ("stack", "~/.stack/snapshots"),
    ("cabal", "~/.cabal/packages"),
    ("hex", "~/.hex/packages"),
    ("cargo's git sources", "~/.cargo/git/db"),
    ("npm", "~/.npm/_cacache"),
    ("bazelisk", "~/.cache/bazelisk"),
    ("prisma", "~/.cache/prisma"),
    ("quicklisp", "~/quicklisp/dists"),
    ("R's packages", "~/R/x86_64-pc-linux-gnu-library/4.2"),
    ("jupyter kernels", "~/.local/share/jupyter/kernels"),
    ("ansible's collections", "~/.ansible/collections"),
    ("what the user trusts in mise", "~/.local/state/mise/trusted-configs"),
    ("pip", "~/.cache/pip/http"),
    ("uv", "~/.cache/uv/wheels"),
)


def program(what, path):
    return Case(f"{what} runs", path, saying(path, path.rpartition("/")[2]))


def cache(what, directory):
    """By the place that its tool looks at, in the home of whoever runs it."""
    inside = {"~/.cargo/git/db": "${CARGO_HOME-$HOME/.cargo}/git/db"}.get(directory, directory)
    return Case(f"the user's cache of {what} is there", f"cat {inside}/entry; echo more >{inside}/other; cat {inside}/other",
         f"mkdir -p {directory}; echo kept >{directory}/entry")


MORE = [
    Case("a program of an environment names its Python by the user's home", "~/.cache/pypoetry/virtualenvs/app/bin/tool",
         saying("~/.cache/pypoetry/virtualenvs/app/bin/python", "python of the environment")
         + script("~/.cache/pypoetry/virtualenvs/app/bin/tool", "#!$HOME/.cache/pypoetry/virtualenvs/app/bin/python")),
    Case("pre-commit's environments name themselves by the user's home", "~/.cache/pre-commit/repo1/py_env/bin/hook",
         saying("~/.cache/pre-commit/repo1/py_env/bin/python", "hook") + script("~/.cache/pre-commit/repo1/py_env/bin/hook", "#!$HOME/.cache/pre-commit/repo1/py_env/bin/python")),
    Case("a package is added to an environment of conda", "echo new >~/miniforge3/envs/w/lib/new.py; cat ~/miniforge3/envs/w/lib/*.py; rm ~/miniforge3/envs/w/lib/old.py; ls ~/miniforge3/envs/w/lib",
         "mkdir -p ~/miniforge3/envs/w/lib; echo old >~/miniforge3/envs/w/lib/old.py"),
    Case("a tool that pipx installed runs by its name", "hello-pipx",
         saying("~/.local/share/pipx/venvs/hello/bin/hello-pipx", "pipx") + "mkdir -p ~/.local/bin; ln -s ~/.local/share/pipx/venvs/hello/bin/hello-pipx ~/.local/bin/"),
    Case("a tool that pip installed for the user finds its modules, and no virtual environment does",
         "hello-user; python3 -c 'import hello_user'; python3 -m venv --without-pip v; ! v/bin/python -c 'import hello_user' 2>/dev/null; rm -r v",
         'd=$(python3 -m site --user-site); mkdir -p $d; echo \'def main(): print("of the user")\' >$d/hello_user.py\n'
         + script("~/.local/bin/hello-user", "#!/usr/bin/python3", "from hello_user import main; main()")),
    Case("a provider in terraform's plugin cache, to which a project has a link, runs", ".terraform/providers/p/provider",
         saying("~/.terraform.d/plugin-cache/example/p/provider", "provider")
         + "mkdir -p .terraform/providers; ln -s ~/.terraform.d/plugin-cache/example/p .terraform/providers/p"),
    Case("a package in renv's cache, to which a project has a link, is read", "cat renv/library/p/DESCRIPTION",
         "mkdir -p ~/.cache/R/renv/cache/v5/p renv/library; echo 'Package: p' >~/.cache/R/renv/cache/v5/p/DESCRIPTION; ln -s ~/.cache/R/renv/cache/v5/p renv/library/p"),
    Case("a program of nix's profile runs, to which PATH leads by links", "nix-tool", saying("~/.local/state/nix/profiles/profile-1-link/bin/nix-tool", "nix-tool")
         + "ln -s profile-1-link ~/.local/state/nix/profiles/profile; ln -s ~/.local/state/nix/profiles/profile ~/.nix-profile",
         variables=(("PATH", "/home/alice/.nix-profile/bin:/usr/local/bin:/usr/bin:/bin"),)),
    Case("a module of Perl in the home is found", "perl -MMine -e 'print Mine::word(), qq(\\n)'",
         "mkdir -p ~/perl5/lib/perl5; echo 'package Mine; sub word { \"of the home\" } 1;' >~/perl5/lib/perl5/Mine.pm", "perl",
         variables=(("PERL5LIB", "/home/alice/perl5/lib/perl5"),)),
    Case("the dotnet of the home writes its marks", "~/.dotnet/dotnet", script("~/.dotnet/dotnet", "#!/bin/sh", "touch ~/.dotnet/first-use && echo built")),
    Case("flutter takes its lock", "~/flutter/bin/flutter", script("~/flutter/bin/flutter", "#!/bin/sh", "mkdir -p ~/flutter/bin/cache && touch ~/flutter/bin/cache/lockfile && echo locked")),
    Case("a manager of versions adds a version", "mkdir ~/.pyenv/versions/3.13.0 && ls ~/.pyenv/versions", "mkdir -p ~/.pyenv/versions/3.12.1", differs=READ_ONLY_TOOLCHAINS,
         seen=("status: outside 0, inside 1", "output: -3.1*", "errors: +mkdir: cannot create directory ‘~/.pyenv/versions/3.13.0’: Read-only file system")),
]
CASES = [*(program(*one) for one in PROGRAMS), *(cache(*one) for one in CACHES), *MORE]
