#compdef pi
# Completion of pi in zsh: the options of the wrapper, and paths. The agent's own options are not known before it runs.

local -a options
if [[ $PREFIX == --pi-agent-tmpdir=* ]]; then
    compset -P '*='
    _files -/
elif [[ $PREFIX == -* ]]; then
    options=(${(f)"$(pi --pi-agent-help 2>/dev/null | sed -n 's/^  \(--pi-agent-[a-z]*=\{0,1\}\)[A-Z]* *\(.*\)/\1:\2/p')"})
    _describe -o option options -S ''
else
    compset -P '@'
    _files
fi
