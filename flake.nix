# The flake: package, overlay, the NixOS module, a shell to develop in, and checks. docs/platforms/nixos.md is its manual.
{
  description = "pi-agent: the coding agent pi under a policy, as an account of its own in a hardened unit";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      # `prev` by this name: `nix flake check` wants it.
      overlays.default = final: prev: { pi-agent = final.callPackage ./nix/package.nix { }; };

      # By its path, so that a system that imports it twice has it once.
      nixosModules.default = { imports = [ ./nix/module.nix ]; };

      packages = forEach (pkgs: { default = pkgs.callPackage ./nix/package.nix { }; });

      devShells = forEach (pkgs: {
        default = pkgs.mkShell {
          inputsFrom = [ self.packages.${pkgs.stdenv.hostPlatform.system}.default ];
          packages = [ pkgs.clang-tools pkgs.shellcheck ];
        };
      });

      checks = forEach (pkgs: {
        package = self.packages.${pkgs.stdenv.hostPlatform.system}.default;
        vm = import ./nix/test-vm.nix { inherit pkgs; module = self.nixosModules.default; };
      });
    };
}
