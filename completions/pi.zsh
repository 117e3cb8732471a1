#compdef pi
# Completion of pi in zsh: the options of the wrapper and, from a list, options and commands of the agent, and paths. Only pi itself is started.

local -a options commands
# Installed as DATADIR/zsh/site-functions/_pi.
local list=${${(%):-%x}%/zsh/*}/pi-agent/agent-options/pi
if [[ $PREFIX == --pi-agent-tmpdir=* ]]; then
    compset -P '*='
    _files -/
elif [[ $PREFIX == -* ]]; then
    options=(${(f)"$(pi --pi-agent-help 2>/dev/null | sed -n 's/^  \(--pi-agent-[a-z-]*=\{0,1\}\)[A-Z]* *\(.*\)/\1:\2/p')"})
    if [[ $PREFIX != --pi-agent-* ]]; then
        [[ ! -r $list ]] || options+=(${(f)"$(sed -n 's/^\(-[^[:space:]]*\)\t\(.*\)/\1:\2/p' $list)"})
    fi
    _describe -o option options -S ''
else
    if [[ $CURRENT == 2 && -r $list ]]; then
        commands=(${(f)"$(sed -n 's/^\([a-z]*\)\t\(.*\)/\1:\2/p' $list)"})
        _describe -t commands command commands
    fi
    compset -P '@'
    _files
fi
