# shellcheck shell=sh
# For login shells of the agent. pi-agent puts this file here where there is none; change it as you like.

# /etc/profile has set PATH anew, without the agent's own directories.
case :$PATH: in
*":$HOME/.local/bin:"*) ;;
*)
    PATH=/usr/libexec/pi-agent/shims:$PATH
    PATH=$HOME/.local/share/mise/shims:$HOME/.local/bin:$HOME/.local/share/npm-global/bin:$HOME/.local/share/cargo/bin:$PATH
    export PATH
    ;;
esac

if [ -n "${BASH_VERSION-}" ] && [ -r "$HOME/.bashrc" ]; then
    # shellcheck source=/dev/null
    . "$HOME/.bashrc"
fi
