# shellcheck shell=bash
# Completion of pi in bash: the options of the wrapper, and paths. The agent's own options are not known before it runs.

_pi_of_pi_agent() {
    local cur=${COMP_WORDS[COMP_CWORD]} kind=-f
    [[ $cur != = ]] || cur=
    [[ $COMP_LINE != *--pi-agent-tmpdir=$cur ]] || kind=-d # bash takes the word apart at =
    COMPREPLY=()
    if [[ $cur == -* ]]; then
        local options
        options=$(pi --pi-agent-help 2>/dev/null | sed -n 's/^  \(--pi-agent-[a-z]*=\{0,1\}\).*/\1/p')
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
    else
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen "$kind" -- "$cur")
    fi
}
complete -F _pi_of_pi_agent pi
