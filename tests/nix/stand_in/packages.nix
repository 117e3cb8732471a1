# A stand-in for nixpkgs' packages: nothing is built; what would be is there to be looked at. The product's own package is at `ours`.
{ lib, ours, programs ? { } }:
let
  derivation = name: more: { type = "derivation"; inherit name; outPath = "${builtins.storeDir}/${name}"; } // more;
  ourPackage = { commandName ? "pi", runnerName ? "pi-agent-runner" }: derivation "pi-agent" {
    outPath = if commandName == "pi" && runnerName == "pi-agent-runner" then ours else "${ours}-${commandName}-${runnerName}";
    override = ourPackage;
  };
in
{
  inherit lib derivation;
  pi-coding-agent = derivation "pi-coding-agent" { };
  pi-agent = ourPackage { };
  crun = derivation "crun" { };
  conmon = derivation "conmon" { };
  callPackage = file: arguments: ourPackage { };
  writeText = name: text: derivation name { inherit text; };
  runCommand = name: environment: script: derivation name (environment // { inherit script; });
}
