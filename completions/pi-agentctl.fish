# Completion of pi-agentctl in fish: the program says what may come next; where it says nothing, fish offers paths.

function __pi_agentctl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answers (pi-agentctl complete $words[2..] "$current" 2>/dev/null)
    if test -n "$answers"
        printf '%s\n' $answers
    else
        __fish_complete_path "$current"
    end
end
complete -c pi-agentctl -f -a '(__pi_agentctl_complete)'
