# shellcheck shell=bash
# Completion of pi in bash: the options of the wrapper and, from a list, options and commands of the agent, and paths. Only pi itself is started.

# Installed as DATADIR/bash-completion/completions/pi.
_pi_agent_options=${BASH_SOURCE[0]%/bash-completion/*}/pi-agent/agent-options/pi

_pi_of_pi_agent() {
    local cur=${COMP_WORDS[COMP_CWORD]} kind=-f
    [[ $cur != = ]] || cur=
    [[ $COMP_LINE != *--pi-agent-tmpdir=$cur ]] || kind=-d # bash takes the word apart at =
    COMPREPLY=()
    if [[ $cur == -* ]]; then
        local options
        options=$(pi --pi-agent-help 2>/dev/null | sed -n 's/^  \(--pi-agent-[a-z-]*=\{0,1\}\).*/\1/p')
        [[ $cur == --pi-agent-* ]] || options+=" $(sed -n 's/^\(-[^[:space:]]*\).*/\1/p' "$_pi_agent_options" 2>/dev/null)"
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
    else
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen "$kind" -- "$cur")
        # Its commands are only its first argument.
        ((COMP_CWORD != 1)) ||
            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$(sed -n 's/^\([a-z]*\)\t.*/\1/p' "$_pi_agent_options" 2>/dev/null)" -- "$cur")
    fi
}
complete -F _pi_of_pi_agent pi
