"""Programs for attacks on session keyrings (session-keyring(7)); Python has no call for them."""

SECRET = "quokka-key"
CALLS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    result = libc.syscall(*arguments)
    return result if result >= 0 else -ctypes.get_errno()
SESSION = -3
"""
# Adds a key that whoever has the keyring may read, and becomes the program that its arguments name.
ADD_KEY = CALLS + f"""
key = call(248, b"user", b"of-attack", b"{SECRET}", {len(SECRET)}, SESSION)
assert key > 0, key
assert call(250, 5, key, 0x3f3f0000 | 0x3f3f) == 0  # KEYCTL_SETPERM: possessor and user
os.execvp(sys.argv[1], sys.argv[1:])
"""
# Says the key's text, or the error.
READ_KEY = CALLS + """
key = call(250, 10, SESSION, b"user", b"of-attack", 0)  # KEYCTL_SEARCH
text = ctypes.create_string_buffer(64)
size = call(250, 11, key, text, 64) if key > 0 else key  # KEYCTL_READ
print(text.raw[:size].decode() if size > 0 else f"error {-size}", flush=True)
"""
