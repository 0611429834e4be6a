#compdef memguardctl
# SPDX-License-Identifier: MIT
# zsh completion for memguardctl(1)

_memguardctl_verbs() {
        local -a verbs=(
                'status:the host and a row a unit, or units in detail'
                'list-processes:processes, their allocators and agents'
                'top:the units, kept up to date on the screen'
                'history:what a unit looked like, and its trims'
                'plot:the same drawn, on the terminal or into a file'
                'survey:rank the units that an agent would help'
                'enroll:give a service an agent, to be observed'
                'withdraw:take back what enroll wrote'
                'explain:each condition of the last decision'
                'advise:what to change for a unit'
                'trim:trim a unit now'
                'pause:stop trimming until resumed'
                'resume:end a pause'
                'reload:make memguardd read its configuration again'
                'check-config:say what is wrong with the configuration'
                'cat-config:show the configuration files as they apply'
                'simulate:run a recorded trace through the policy'
                'log-level:show or set the log level of the daemon'
        )
        _describe -t commands 'command' verbs
}

_memguardctl_units() {
        local -a units connection
        (( $+opt_args[--runtime-directory] )) &&
                connection=("--runtime-directory=${(Q)opt_args[--runtime-directory]}")
        units=(${${(f)"$(command memguardctl $connection --no-legend --no-pager --json=off status 2>/dev/null)"}%% *})
        _wanted units expl 'unit' compadd -a units
}

_memguardctl_services() {
        local -a services
        services=(${${(f)"$(command systemctl list-units --type=service --plain --no-legend --no-pager 2>/dev/null)"}%% *})
        _wanted services expl 'service' compadd -a services
}

_memguardctl_enrolled() {
        local -a services
        services=(/etc/systemd/system/*.service.d/50-memguard.conf(N:h:t:r))
        _wanted services expl 'enrolled service' compadd -a services
}

_memguardctl() {
        local curcontext=$curcontext state line ret=1
        typeset -A opt_args

        _arguments -C \
                '(- *)'{-h,--help}'[show help]' \
                '(- *)--version[show the version]' \
                '--runtime-directory=[talk to the daemon that runs there]:directory:_directories' \
                '--config=[check-config, cat-config, simulate: instead of the system configuration]:file:_files' \
                '(-j)--json=[print JSON]:mode:(pretty short off)' \
                '(--json)-j[like --json=pretty on a terminal]' \
                '--no-pager[do not pipe output into a pager]' \
                '--no-legend[leave out headers and the host line]' \
                '--dry-run[trim: only say what it would bring]' \
                '--all[pause, resume: every unit]' \
                '--restart[enroll, withdraw: restart the service at once]' \
                '--print[enroll: only say what would be written]' \
                '--since=[history, plot: leave out what is older]:time:(10min 1h 1d today yesterday)' \
                '(-o --output)'{-o+,--output=}'[plot: draw into an SVG or PNG file]:file:_files' \
                '--interval=[top: refresh so often]:time:(1s 2s 5s 10s)' \
                '--user[enroll, withdraw: a unit of the calling user]' \
                '--root=[enroll, withdraw: write below a directory alone]:directory:_directories' \
                '1: :_memguardctl_verbs' \
                '*: :->argument' && return

        [[ $state == argument ]] || return ret
        # The verb, and behind it the word that is being completed.
        case $line[1] in
        status)
                _memguardctl_units && ret=0
                ;;
        history | plot | list-processes | explain | advise | trim | pause | resume)
                (( $#line <= 2 )) && _memguardctl_units && ret=0
                ;;
        enroll)
                (( $#line <= 2 )) && _memguardctl_services && ret=0
                ;;
        withdraw)
                (( $#line <= 2 )) && _memguardctl_enrolled && ret=0
                ;;
        check-config | cat-config | simulate)
                (( $#line <= 2 )) && _files && ret=0
                ;;
        log-level)
                (( $#line <= 2 )) && _wanted levels expl 'level' compadd err warning notice info debug && ret=0
                ;;
        esac
        return ret
}

_memguardctl "$@"
