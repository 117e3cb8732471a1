# Keys of the policy about what sessions see: projects, the host, toolchains.
[
  {
    option = "projects.paths";
    key = "projects.paths";
    type.oneOf = [ "host" "alias" ];
    default = "host";
    example = "alias";
    description = ''
      Where a project lies inside: at its path on the host, or below `~/projects` of the agent's home, without a trace of the user's.
    '';
  }
  {
    option = "projects.scope";
    key = "projects.scope";
    type.oneOf = [ "root" "project" ];
    default = "root";
    example = "project";
    description = "What is shown: the root that holds the working directory, or only the repository in it that does.";
  }
  {
    option = "projects.ownership";
    key = "projects.ownership";
    type.oneOf = [ "idmap" ];
    default = "idmap";
    example = "idmap";
    description = "How files that the agent makes come to belong to the user: by an id-mapped mount.";
  }
  {
    option = "projects.protect";
    key = "projects.protect";
    type = { oneOf = [ "default" ]; orList = true; };
    default = "default";
    example = [ ".git/hooks" "Makefile" ];
    description = ''
      What of a repository is read-only inside: what git executes (`"default"`), or these paths, relative to the repository. `[ ]` is nothing.
    '';
  }
  {
    option = "projects.mask";
    key = "projects.mask";
    type = "list";
    default = [ ];
    example = [ ".env*" "deploy/keys" ];
    description = "What cannot be read inside: patterns of names anywhere in the project, or with `/` of paths.";
  }
  {
    option = "projects.aftermath";
    key = "projects.aftermath";
    type = "bool";
    default = true;
    example = false;
    description = "Whether `pi` tells at the end what the session left that runs code outside.";
  }
  {
    option = "toolchains.readable";
    key = "toolchains.readable";
    type = { oneOf = [ "default" "best_effort" ]; orList = true; };
    default = "default";
    example = [ "default" "~/.sdkman" ];
    description = ''
      Directories of the users' homes with programs, read-only inside. With `best_effort`, also as a word of the list, what cannot be shown
      is left out.
    '';
  }
  {
    option = "toolchains.caches";
    key = "toolchains.caches";
    type = { oneOf = [ "default" "best_effort" ]; orList = true; };
    default = "default";
    example = [ ];
    description = "Directories of the users' homes with downloads; what a session changes in them ends with it. `best_effort` as for `readable`.";
  }
  {
    option = "view";
    key = "view";
    type.oneOf = [ "minimal" "host" ];
    default = "minimal";
    example = "host";
    description = "What sessions see of the host: programs and a little of /etc, or all of /etc that is readable. The store is in both.";
  }
  {
    option = "viewPaths";
    key = "view_paths";
    type = "list";
    default = [ ];
    example = [ "/srv/toolchains" ];
    description = "Absolute paths that are shown besides, read-only; only root may be able to write there.";
  }
  {
    option = "path";
    key = "path";
    type = "list";
    default = [ ];
    example = [ "/usr/local/go/bin" "/opt/tool/bin" ];
    description = ''
      Directories that agents' PATH holds before the host's own: absolute paths of what sessions are shown (`/usr`, `/opt`, `viewPaths`), which
      only root can change.
    '';
  }
  {
    option = "devices";
    key = "devices";
    type = "list";
    default = [ ];
    example = [ "/dev/dri" "/dev/kvm" "nvidia" ];
    description = "Device nodes below /dev, or directories of them, that sessions may read and write; `nvidia`: all of that driver's. For the method systemd.";
  }
]
