# The options of NixOS that the module sets or asks, declared as nixpkgs declares them, for whichever library: stand-in or nixpkgs' own.
{ lib, ... }:
let
  inherit (lib) mkOption types;
  list = of: mkOption { type = types.listOf of; default = [ ]; };
  text = default: mkOption { type = types.str; inherit default; };
  flag = default: mkOption { type = types.bool; inherit default; };

  sudo = enabled: {
    enable = flag enabled;
    execWheelOnly = flag false;
    extraConfig = mkOption { type = types.lines; default = ""; };
    extraRules = list (types.submodule {
      options = {
        users = list (types.either types.str types.int);
        groups = list (types.either types.str types.int);
        host = text "ALL";
        runAs = text "ALL:ALL";
        commands = list (types.either types.str (types.submodule {
          options = {
            command = mkOption { type = types.str; };
            options = list (types.enum [ "NOPASSWD" "PASSWD" "NOEXEC" "EXEC" "SETENV" "NOSETENV" "LOG_INPUT" "NOLOG_INPUT" "LOG_OUTPUT" "NOLOG_OUTPUT" ]);
          };
        }));
      };
    });
  };
in
{
  options = {
    assertions = list types.anything;
    environment.etc = mkOption {
      type = types.attrsOf (types.submodule { options.source = mkOption { type = types.path; }; });
      default = { };
    };
    environment.systemPackages = list types.package;
    security.sudo = sudo true;
    security.sudo-rs = sudo false;
    systemd.packages = list types.package;
    systemd.tmpfiles.rules = list types.str;
    systemd.services = mkOption {
      type = types.attrsOf (types.submodule {
        options = {
          description = text "";
          wantedBy = list types.str;
          after = list types.str;
          restartTriggers = list types.anything;
          serviceConfig = mkOption { type = types.attrsOf types.anything; default = { }; };
        };
      });
      default = { };
    };
    users.users = mkOption {
      type = types.attrsOf (types.submodule {
        options = {
          isSystemUser = flag false;
          isNormalUser = flag false;
          uid = mkOption { type = types.nullOr types.int; default = null; };
          description = text "";
          home = text "/var/empty";
          group = text "";
          extraGroups = list types.str;
          packages = list types.package;
        };
      });
      default = { };
    };
    users.groups = mkOption {
      type = types.attrsOf (types.submodule { options.members = list types.str; });
      default = { };
    };
  };
}
