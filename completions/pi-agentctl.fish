# Completion of pi-agentctl in fish: the program says what may come next, and asks for paths.

function __pi_agentctl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct | string unescape)
    set -l option (string match -r -- '^--[^=]*=' $current; or echo '')
    set -l value (string replace -r -- '^--[^=]*=' '' $current)
    for answer in (pi-agentctl complete $words[2..] "$current" 2>/dev/null)
        switch $answer
            case :paths
                for path in (__fish_complete_path $value)
                    echo $option$path
                end
            case :directories
                for path in (__fish_complete_directories $value '')
                    echo $option$path
                end
            case '*'
                echo $answer
        end
    end
end
complete -c pi-agentctl -f -a '(__pi_agentctl_complete)'
