# The outputs of flake.nix and the machine of nix/test-vm.nix, with stand-ins for what comes from nixpkgs.
{ library, ours }:
let
  lib = import library;
  pkgs = import ./stand_in/packages.nix { inherit lib ours; } // {
    clang-tools = pkgs.derivation "clang-tools" { };
    shellcheck = pkgs.derivation "shellcheck" { };
    git = pkgs.derivation "git" { };
    mkShell = shell: shell;
    stdenv.hostPlatform.system = "x86_64-linux";
    testers.runNixOSTest = test: test;
    writeShellScriptBin = name: text: pkgs.derivation name { };
    linkFarm = name: files: pkgs.derivation name { inherit files; };
  };
  file = import ../../flake.nix;
  outputs = file.outputs { self = outputs; nixpkgs = { inherit lib; legacyPackages = { x86_64-linux = pkgs; aarch64-linux = pkgs; }; }; };
  test = outputs.checks.x86_64-linux.vm;
  machine = (lib.evalModules {
    modules = [ ./stand_in/nixos.nix test.nodes.machine ];
    specialArgs = { inherit pkgs; };
  }).config;
in
{
  inputs = builtins.attrNames file.inputs;
  systems = builtins.attrNames outputs.packages;
  package = outputs.packages.x86_64-linux.default.outPath;
  overlaid = (outputs.overlays.default pkgs pkgs).pi-agent.outPath;
  check = outputs.checks.x86_64-linux.package.outPath;
  shell = map (package: package.name) outputs.devShells.x86_64-linux.default.packages;
  inherit (test) testScript;
  machine = {
    failed = map (assertion: assertion.message) (builtins.filter (assertion: !assertion.assertion) machine.assertions);
    sudo = machine.security.sudo.extraRules;
    draft = machine.environment.etc."pi-agent/policy.yaml".source.draft.text;
  };
}
