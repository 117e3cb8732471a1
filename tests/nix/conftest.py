"""Fixtures of the tests of the Nix files: the module under each library that is there, and the product's own word on policies."""

import pytest
from evaluating import LIBRARIES, Product, evaluate_modules


@pytest.fixture(scope="session", params=LIBRARIES)
def library(request):
    return LIBRARIES[request.param]


@pytest.fixture(scope="session")
def configurations(library):
    """{name: what the module makes of it} of configurations.nix."""
    return evaluate_modules("configurations.nix", "configurations", library)


@pytest.fixture(scope="session")
def product():
    return Product()
