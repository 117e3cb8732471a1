# Configurations whose policies tests/nix/policies/NAME.yaml says by hand.
let
  with' = options: { m3ta.pi-agent = { enable = true; } // options; };
  alice.alice.projectRoots = [ "~/projects" ];
in
{
  minimal = with' { hostUsers = alice; };
  shared = with' {
    accounts = "shared";
    hostUsers = alice // { bob = { projectRoots = [ "/srv/shared/app" "~/work" ]; environment.EDITOR = "nano"; }; };
  };
  per_user = with' {
    user = "coder";
    group = "coders";
    accounts = "per-user";
    hostUsers = alice // { bob = { projectRoots = [ "~/work" ]; runAs = "team"; configPath = "/srv/config/bob"; sshKey = ".ssh/id_agent"; signingKey = ".ssh/id_signing"; }; };
  };
  groups = with' {
    accounts = "per-user";
    hostUsers."%devs" = { projectRoots = [ "/srv/devs" ]; members = [ "alice" "bob" "carol" ]; };
  };
  config_directories = with' {
    accounts = "shared";
    wrapper.hostConfigPath = ".config/pi";
    config.classes = { "extensions/experimental" = "never"; sessions = "seed"; };
    hostUsers = alice // { bob = { projectRoots = [ "~/work" ]; configPath = ".pi/agent"; }; };
  };
  documents = with' {
    hostUsers = alice;
    # What YAML would read as something else stays what it is; null and empty ones are told, too.
    settings = { theme = "yes"; version = "010"; ratio = 0.5; nothing = null; deep.list = [ 1 "two" { three = false; } [ ] ]; quote = "a \"b\" \\ c\n"; };
    models.providers.local = { baseUrl = "http://127.0.0.1:8099/v1"; apiKey = "$KEY"; };
    keybindings."ctrl+x" = "quit";
    mcp.mcpServers.files = { command = "files"; args = [ "--root" "." ]; };
    settingsLock = true;
  };
  environment = with' {
    hostUsers = alice;
    environment = { PI_OFFLINE = "1"; GREETING = "grüß: #1"; EMPTY = ""; };
    environmentFiles = [ "/run/secrets/pi.env" ];
    hostEnvironmentFiles = [ ".config/pi/env" "/srv/env/common" ];
  };
  network = with' { hostUsers = alice; network = [ "127.0.0.0/8" "10.20.0.0/16" ]; };
  hosts = with' {
    accounts = "per-user";
    hostUsers = {
      alice = { projectRoots = [ "~/projects" { path = "~/untrusted"; network.hosts = [ ]; } ]; };
      bob = { projectRoots = [ "~/work" ]; network = { hosts = [ "*.example.org" ]; may_grant = [ "*.debian.org:80" ]; }; providers = { }; };
    };
    network.hosts = [ "github.com" "github.com:22" "localhost:5432" ];
    providers.anthropic.key_file = "/run/secrets/anthropic.key";
  };
  confined = with' {
    hostUsers = alice;
    network = "none";
    projects = { paths = "alias"; scope = "project"; ownership = "none"; protect = [ ".git/hooks" "Makefile" ]; mask = [ ".env*" "deploy/keys" ]; aftermath = false; };
    view = "host";
    viewPaths = [ "/srv/toolchains" ];
    path = [ "/srv/toolchains/bin" ];
    devices = [ "/dev/kvm" "nvidia" ];
    scratch = "tmpfs";
    wrapper.clipboard = false;
    hardening = {
      tracing = "never";
      denySystemCalls = [ "@memlock" "memfd_create" ];
      allowSystemCalls = [ "personality" ];
      addressFamilies = [ "unix" "inet" ];
    };
  };
  limited = with' { hostUsers = alice; limits = { memory = "8G"; tasks = 2000; cpu = "400%"; runtime = "12h"; sessions = 2; disk = "10G"; diskWithoutQuota = "refuse"; }; };
  levels = with' {
    accounts = "per-user";
    hostUsers = {
      alice = { projectRoots = [ "~/projects" { path = "~/untrusted"; network = "none"; read_only = true; } ]; readable = [ "~/datasets" ]; };
      bob = { projectRoots = [ "~/work" ]; network = [ "10.0.0.0/8" ]; limits.memory = "64G"; settings = { theme = "dark"; }; projects.readOnly = true; };
    };
    network = "loopback";
  };
  toolchains = with' { hostUsers = alice; toolchains = { readable = [ "default" "~/.sdkman" ]; caches = "best_effort"; }; };
  bubblewrap = with' { hostUsers = alice; sandbox.method = "bwrap"; gitIdentity = false; boxNotes = false; };
  named = with' { hostUsers = alice; binaryName = "coding-agent"; };
  state_elsewhere = with' { hostUsers = alice; stateDir = "/srv/agents"; };
  stopped = with' { wrapper.enable = false; };
  stopped_with_users = with' { wrapper.enable = false; hostUsers = alice; };
}
