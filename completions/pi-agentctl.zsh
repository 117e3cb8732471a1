#compdef pi-agentctl
# Completion of pi-agentctl in zsh: the program says what may come next; where it says nothing, zsh offers paths.

local -a candidates
candidates=(${(f)"$(pi-agentctl complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
if (( $#candidates )); then
    candidates=(${candidates//$'\t'/:})
    _describe pi-agentctl candidates
else
    [[ $PREFIX != --*=* ]] || compset -P '*='
    _files
fi
