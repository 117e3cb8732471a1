# shellcheck shell=bash
# Read by every bash that is not interactive (BASH_ENV), so that pip installs into the virtual environment that a script activates.
#
# pip refuses PIP_USER=1 there. The end of each `activate` and `deactivate` is `hash -r`, which a script has no other reason to
# wrap: so all that comes after, in this shell and beneath, has the right PIP_USER, and no function stands before pip or python.

_pip_user_venv_guard() {
    if [[ -n ${VIRTUAL_ENV-} && :${PATH-}: == *":$VIRTUAL_ENV/bin:"* ]]; then
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
}

hash() {
    local status=0
    builtin hash "$@" || status=$?
    _pip_user_venv_guard
    return "$status"
}

_pip_user_venv_guard # one that is active already
