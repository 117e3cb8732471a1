# Keys of the policy about what sessions see: projects, the host, toolchains.
[
  {
    option = "projects.paths";
    key = "projects.paths";
    type.oneOf = [ "host" "alias" ];
    default = "host";
    example = "alias";
    description = ''
      Where a project is in a session. `host`: at its path on the host. `alias`: below `~/projects` of the agent's home, so that no path
      names the user's home.
    '';
  }
  {
    option = "projects.scope";
    key = "projects.scope";
    type.oneOf = [ "root" "project" ];
    default = "root";
    example = "project";
    description = "What a session sees: the whole root that holds the working directory, or only the repository that does.";
  }
  {
    option = "projects.ownership";
    key = "projects.ownership";
    type.oneOf = [ "idmap" "none" ];
    default = "idmap";
    example = "none";
    description = ''
      Whose the files of a project are. `idmap`: what the agent makes belongs to the user, and it has the user's access there. `none`: what
      it makes belongs to its own account, which needs access of its own (docs/concepts/ownership.md).
    '';
  }
  {
    option = "projects.protect";
    key = "projects.protect";
    type = { oneOf = [ "default" ]; orList = true; };
    default = "default";
    example = [ ".git/hooks" "Makefile" ];
    description = ''
      What is read-only in a repository: what git executes (`"default"`), or these paths, relative to the repository. `[ ]` is nothing.
    '';
  }
  {
    option = "projects.mask";
    key = "projects.mask";
    type = "list";
    default = [ ];
    example = [ ".env*" "deploy/keys" ];
    description = ''
      What a session cannot read: patterns of names anywhere in the project, or of paths where they have a `/`: from the root, and from the
      repository where a session shows that alone.
    '';
  }
  {
    option = "projects.aftermath";
    key = "projects.aftermath";
    type = "bool";
    default = true;
    example = false;
    description = "Whether `pi` lists at the end what the session left that runs code outside the sandbox.";
  }
  {
    option = "projects.readOnly";
    key = "projects.read_only";
    type = "bool";
    default = false;
    example = true;
    description = "Whether a session can only read the project, and change nothing in it.";
  }
  {
    option = "toolchains.readable";
    key = "toolchains.readable";
    type = { oneOf = [ "default" "best_effort" ]; orList = true; };
    default = "default";
    example = [ "default" "~/.sdkman" ];
    description = ''
      Directories of the users' homes with programs, read-only in a session. `best_effort`, alone or in the list, leaves out what cannot
      be shown.
    '';
  }
  {
    option = "toolchains.caches";
    key = "toolchains.caches";
    type = { oneOf = [ "default" "best_effort" ]; orList = true; };
    default = "default";
    example = [ ];
    description = ''
      Directories of the users' homes with downloads. What a session changes there ends with it. `best_effort` as for `readable`.
    '';
  }
  {
    option = "view";
    key = "view";
    type.oneOf = [ "minimal" "host" ];
    default = "minimal";
    example = "host";
    description = "What a session sees of the host: programs and a little of /etc, or all of /etc that is readable. The store is in both.";
  }
  {
    option = "viewPaths";
    key = "view_paths";
    type = "list";
    default = [ ];
    example = [ "/srv/toolchains" ];
    description = "Absolute paths that a session also sees, read-only. Only root may be able to write there.";
  }
  {
    option = "path";
    key = "path";
    type = "list";
    default = [ ];
    example = [ "/usr/local/go/bin" "/opt/tool/bin" ];
    description = ''
      Directories that come before the host's own in the agents' PATH: absolute paths of what a session sees (`/usr`, `/opt`,
      `viewPaths`), which only root can change.
    '';
  }
  {
    option = "devices";
    key = "devices";
    type = "list";
    default = [ ];
    example = [ "/dev/dri" "/dev/kvm" "nvidia" ];
    description = ''
      Device nodes below /dev, or directories of them, that sessions may read and write. `nvidia` is all devices of that driver. Only the
      method systemd can show them.
    '';
  }
]
