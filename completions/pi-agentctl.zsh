#compdef pi-agentctl
# Completion of pi-agentctl in zsh: the program says what may come next, and asks for paths.

local answer name
local -a answers candidates
answers=("${(@f)$(pi-agentctl complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
for answer in $answers; do
    case $answer in
    :paths | :directories)
        [[ $PREFIX != --*=* ]] || compset -P '*='
        if [[ $answer == :directories ]]; then _files -/; else _files; fi
        ;;
    *)
        name=${answer%%$'\t'*}
        name=${name//\\/\\\\} # _describe takes backslashes away
        candidates+=("${name//:/\\:}:${answer#*$'\t'}")
        ;;
    esac
done
(( ! $#candidates )) || _describe pi-agentctl candidates
