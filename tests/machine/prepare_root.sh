#!/bin/sh
# Run inside a new machine root: the test accounts, their projects and their agent configuration.
set -eu
umask 022

groupadd --gid 1500 devs
for account in alice:1000 bob:1001 eve:1002 carol:1003; do
    useradd --uid "${account#*:}" --user-group --create-home --shell /bin/bash "${account%:*}"
    chmod 0700 "/home/${account%:*}"
done
for account in alice bob carol; do
    usermod --append --groups devs "$account"
done

as() {
    account=$1
    shift
    setpriv --reuid="$account" --regid="$account" --init-groups --reset-env "$@"
}

install -d -o alice -g alice /srv/shared /srv/shared/app
install -d -o root -g devs -m 2775 /srv/devs
chown root:root /srv/shared

as alice mkdir -p /home/alice/projects/demo
as alice git config --global user.name alice
as alice git config --global user.email alice@localhost
as alice git config --global init.defaultBranch main
as alice git init -q /home/alice/projects/demo
as alice sh -c 'cd /home/alice/projects/demo && echo "# demo" >README.md && git add README.md && git commit -q -m "Start"'
as bob mkdir -p /home/bob/work/demo

for account in alice bob carol; do
    agent_directory=/home/$account/.pi/agent
    as "$account" mkdir -p "$agent_directory"
    as "$account" tee "$agent_directory/settings.json" >/dev/null <<'EOF'
{"defaultProvider": "scripted", "defaultModel": "scripted"}
EOF
    as "$account" tee "$agent_directory/models.json" >/dev/null <<'EOF'
{"providers": {"scripted": {
  "baseUrl": "http://127.0.0.1:8099/v1", "api": "openai-completions", "apiKey": "none",
  "compat": {"supportsDeveloperRole": false, "supportsReasoningEffort": false},
  "models": [{"id": "scripted", "name": "Scripted", "reasoning": false, "input": ["text"],
    "contextWindow": 128000, "maxTokens": 8192,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}}
EOF
done

# A fixed id keeps systemd from treating every boot as the first one.
echo 5e7e57ab1e0000000000000000000001 >/etc/machine-id
systemctl --quiet mask console-getty.service systemd-resolved.service
rm -f /etc/resolv.conf
systemctl --quiet enable scripted-model.service
