"""`projects.mask`: what is masked cannot be read, by whatever name that leads to it."""

import pytest
from repositories import PLACE, repository
from target import ATTACK_POLICY, Outcome

pytestmark = pytest.mark.position("agent")

MASKED = ATTACK_POLICY.read_text() + "projects:\n  mask: ['.env*', keys, guarded/deploy/token]\n"
SECRET = "mkdir -p keys/deep deploy src/app; for f in .env src/app/.env.local keys/deep/key deploy/token; do echo quokka-masked-7702 >$f; done"
READS = {
    "by its name": "cat .env src/app/.env.local keys/deep/key deploy/token",
    "by /proc/self/root": f"cat /proc/self/root{PLACE}/.env /proc/self/cwd/keys/deep/key",
    "by a link": "ln -s .env a; ln -s keys b; cat a b/deep/key",
    "by a hard link": "ln .env hard; cat hard",
    "after renaming what is above": "mv src other; cat other/app/.env.local",
    "after renaming it": "mv .env plain; cat plain",
    "after making it readable": "chmod 644 .env; chmod -R 755 keys; cat .env keys/deep/key",
    "after unmounting": "umount .env keys; umount -l .env; cat .env keys/deep/key",
    "by a copy of the tree": "cp -r . /tmp/copy; cat /tmp/copy/.env /tmp/copy/keys/deep/key",
    "by git": "git add -f .env keys; git diff --cached; git hash-object -w .env | xargs git cat-file -p",
    "by a directory that is exchanged": "mkdir x; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"keys\", -100, b\"x\", 2)'; cat x/deep/key",
}


@pytest.fixture(scope="module", autouse=True)
def masked(product, weak):
    for target in (product, weak):
        target.machine.install_policy(MASKED)
    yield
    for target in (product, weak):
        target.machine.install_policy(ATTACK_POLICY.read_text())


@pytest.mark.parametrize("how", READS)
def test_what_is_masked_is_not_read(how, prove):
    def attack(target):
        with repository(target, SECRET):
            done = target.pi("sh", "-c", f"{READS[how]}; true", cwd=PLACE)
            return Outcome(b"quokka-masked-7702" in done.stdout, done)

    # What is above is held by a mount of its own.
    prove(attack, *(["mask", "protect-prefixes"] if how == "after renaming what is above" else ["mask"]), quick=True)


def test_what_is_masked_is_as_before_afterwards(product):
    with repository(product, SECRET):
        before = product.machine.root(f"cd {PLACE}; find . -path ./.git -prune -o -printf '%p %u %m %s\\n' | sort").stdout
        product.pi("sh", "-c", "for f in .env keys deploy/token; do rm -rf $f; echo x >$f; chmod 777 $f; done; true", cwd=PLACE)
        assert product.machine.root(f"cd {PLACE}; find . -path ./.git -prune -o -printf '%p %u %m %s\\n' | sort").stdout == before
        assert product.machine.run(["cat", ".env"], cwd=PLACE).stdout == b"quokka-masked-7702\n"
