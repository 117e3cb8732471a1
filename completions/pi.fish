# Completion of pi in fish: the options of the wrapper and, from a list, options and commands of the agent, and paths. Only pi itself is started.

# Installed as DATADIR/fish/vendor_completions.d/pi.fish.
set -g __pi_of_pi_agent_list (string replace -r '/fish/[^/]*$' '' (status dirname))/pi-agent/agent-options/pi

function __pi_of_pi_agent_options
    pi --pi-agent-help 2>/dev/null | string replace -rf -- '^  (--pi-agent-[a-z-]*=?)[A-Z]* *(.*)' '$1'\t'$2'
    if test -r $__pi_of_pi_agent_list
        string match -r '^-.*' <$__pi_of_pi_agent_list
    end
    set -l option --pi-agent-tmpdir=
    if string match -q -- "$option*" (commandline -ct)
        for path in (__fish_complete_directories (commandline -ct | string replace -- $option '') '')
            echo $option$path
        end
    end
end
function __pi_of_pi_agent_files
    for path in (__fish_complete_path (commandline -ct | string sub -s 2))
        echo @$path
    end
end
function __pi_of_pi_agent_commands
    if test -r $__pi_of_pi_agent_list; and test (count (commandline -opc)) -eq 1
        string match -r '^[a-z].*' <$__pi_of_pi_agent_list
    end
end
complete -c pi -a '(__pi_of_pi_agent_commands)'
complete -c pi -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__pi_of_pi_agent_options)'
complete -c pi -n 'string match -q -- "@*" (commandline -ct)' -f -a '(__pi_of_pi_agent_files)'
