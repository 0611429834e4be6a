# SPDX-License-Identifier: MIT
# bash completion for memguardctl(1)

_memguardctl_units() {
        memguardctl "$@" --no-legend --no-pager --json=off status 2>/dev/null | awk '{ print $1 }'
}

_memguardctl_services() {
        systemctl list-units --type=service --plain --no-legend --no-pager 2>/dev/null | awk '{ print $1 }'
}

_memguardctl_enrolled() {
        local file
        for file in /etc/systemd/system/*.service.d/50-memguard.conf; do
                [[ -e $file ]] && file=${file%.d/50-memguard.conf} && echo "${file##*/}"
        done
}

_memguardctl() {
        local cur=${COMP_WORDS[COMP_CWORD]} word verb= given=0 i
        local -a connection=()
        local verbs="status top history plot survey enroll withdraw list-processes explain advise trim pause resume reload check-config cat-config simulate log-level"
        local options="--help --version --runtime-directory= --config= --json= --no-pager --no-legend --dry-run --all --restart --print --user --root= --since= --output= --interval= -o -j -h"

        for ((i = 1; i < COMP_CWORD; i++)); do
                word=${COMP_WORDS[i]}
                case $word in
                --runtime-directory)
                        # "=" is a word break of its own
                        connection=(--runtime-directory="${COMP_WORDS[i + 2]}")
                        ((i += 2))
                        ;;
                --json | --config | --root | --since | --output | --interval)
                        ((i += 2))
                        ;;
                -o) ((i += 1)) ;;
                -*) ;;
                *)
                        if [[ -n $verb ]]; then ((given += 1)); else verb=$word; fi
                        ;;
                esac
        done

        if [[ $cur == "=" || ${COMP_WORDS[COMP_CWORD - 1]} == "=" ]]; then
                local name=${COMP_WORDS[COMP_CWORD - 1]}
                [[ $cur == "=" ]] && cur= || name=${COMP_WORDS[COMP_CWORD - 2]}
                case $name in
                --json) mapfile -t COMPREPLY < <(compgen -W "short pretty off" -- "$cur") ;;
                --since) mapfile -t COMPREPLY < <(compgen -W "10min 1h 1d today yesterday" -- "$cur") ;;
                --interval) mapfile -t COMPREPLY < <(compgen -W "1s 2s 5s 10s" -- "$cur") ;;
                --config | --output) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
                --runtime-directory | --root) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
                esac
                return
        fi
        if [[ ${COMP_WORDS[COMP_CWORD - 1]} == -o ]]; then
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return
        fi
        if [[ $cur == -* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
                [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
                return
        fi
        # All verbs but this one take one argument.
        ((given == 0)) || [[ $verb == status ]] || return
        case $verb in
        "") mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$cur") ;;
        status | history | plot | list-processes | explain | advise | trim | pause | resume)
                mapfile -t COMPREPLY < <(compgen -W "$(_memguardctl_units "${connection[@]}")" -- "$cur")
                ;;
        enroll) mapfile -t COMPREPLY < <(compgen -W "$(_memguardctl_services)" -- "$cur") ;;
        withdraw) mapfile -t COMPREPLY < <(compgen -W "$(_memguardctl_enrolled)" -- "$cur") ;;
        check-config | cat-config | simulate) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        log-level) mapfile -t COMPREPLY < <(compgen -W "err warning notice info debug" -- "$cur") ;;
        esac
}

complete -F _memguardctl memguardctl
