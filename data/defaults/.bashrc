# shellcheck shell=bash
# For interactive shells of the agent. pi-agent puts this file here where there is none; change it as you like.

case $- in
*i*) ;;
*) return ;;
esac

# pip refuses PIP_USER=1 in a virtual environment: it goes when one is activated and comes back when it is left. A PIP_USER that
# somebody else has set, before or meanwhile, is left alone.
_pip_user_venv_guard() {
    local status=$?
    if [[ -n ${VIRTUAL_ENV-} ]]; then
        if [[ -z ${_pip_user_venv-} ]]; then
            _pip_user_venv=left_alone
            if [[ ${PIP_USER-} == 1 ]]; then
                _pip_user_venv=taken
                unset PIP_USER
            fi
        fi
    elif [[ -n ${_pip_user_venv-} ]]; then
        if [[ $_pip_user_venv == taken && -z ${PIP_USER+set} ]]; then
            export PIP_USER=1
        fi
        unset _pip_user_venv
    fi
    return "$status"
}

# Every `activate` ends with this: for a line such as `. venv/bin/activate && pip install x`, within which no prompt comes.
hash() {
    local status=0
    builtin hash "$@" || status=$?
    _pip_user_venv_guard
    return "$status"
}

# A new line, because what is there may end with a semicolon. Of an array this is the first element, which every bash runs.
if [[ ${PROMPT_COMMAND[*]-} != *_pip_user_venv_guard* ]]; then
    # shellcheck disable=SC2178,SC2128
    PROMPT_COMMAND="${PROMPT_COMMAND:+$PROMPT_COMMAND$'\n'}_pip_user_venv_guard"
fi
