# A stand-in for the flake nixpkgs: its library is the directory lib beside this file, its packages are derivations that nobody builds.
{
  outputs = { self }:
    let
      lib = import ./lib;

      packagesOf = system:
        let
          named = name: contents: derivation { inherit name system contents; builder = "/bin/sh"; };
          # What nixpkgs has under this name, for whoever needs it as an argument.
          package = name: pkgs.${name} or (named name [ ]);
          needed = function: builtins.filter (name: !(builtins.functionArgs function).${name}) (builtins.attrNames (builtins.functionArgs function));
          callPackage = file: chosen:
            let
              function = import file;
              made = function (builtins.listToAttrs (map (name: { inherit name; value = package name; }) (needed function)) // chosen);
            in
            made // { override = more: callPackage file (chosen // more); };
          pkgs = {
            inherit lib system callPackage;
            stdenv = {
              hostPlatform.system = system;
              mkDerivation = described: named "${described.pname}-${described.version}"
                (described.nativeBuildInputs ++ described.buildInputs ++ described.mesonFlags ++ [ "${described.src}" ]) // { inherit (described) meta; };
            };
            mkShell = shell: named "shell" (shell.inputsFrom ++ shell.packages);
            testers.runNixOSTest = test: named test.name [ test.testScript ];
            clang-tools = named "clang-tools" [ ];
            shellcheck = named "shellcheck" [ ];
          };
        in
        pkgs;
    in
    { inherit lib; legacyPackages = lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] packagesOf; };
}
