# pi-agent for NixOS. The names of the two programs that people and sudo meet are arguments, because they are compiled in.
{
  lib,
  stdenv,
  bashInteractive,
  boost,
  bubblewrap,
  cli11,
  cmake,
  curl,
  doctest,
  fmt,
  libpsl,
  libseccomp,
  meson,
  ninja,
  nlohmann_json,
  openssl,
  pkg-config,
  python3,
  scdoc,
  sdbus-cpp_2,
  spdlog,
  systemd,
  util-linux,
  yaml-cpp,
  commandName ? "pi",
  runnerName ? "pi-agent-runner",
}:
stdenv.mkDerivation {
  pname = "pi-agent";
  # The one place that says it is project() of meson.build.
  version = builtins.head (builtins.match ".*version: '([0-9.]+)',.*" (builtins.readFile ../meson.build));

  src = lib.cleanSource ./..;

  # cmake only finds what has no pkg-config file (CLI11, doctest).
  nativeBuildInputs = [ cmake meson ninja pkg-config python3 scdoc ];
  dontUseCmakeConfigure = true;
  buildInputs = [ boost cli11 curl doctest fmt libpsl libseccomp nlohmann_json openssl sdbus-cpp_2 spdlog systemd yaml-cpp ];

  mesonBuildType = "release";
  mesonFlags = [
    # sudo is setuid in /run/wrappers alone; the programs of the system are in no directory that other systems have.
    "-Dsudo_path=/run/wrappers/bin/sudo"
    "-Dsystem_path=/run/current-system/sw/bin"
    "-Dshell_path=${bashInteractive}/bin/bash"
    "-Dbwrap_path=${bubblewrap}/bin/bwrap"
    "-Dsetpriv_path=${util-linux}/bin/setpriv"
    # Of the host's own configuration (virtualisation.podman, virtualisation.docker; crun and conmon by module.nix): these methods are
    # chosen by few.
    "-Ddocker_path=/run/current-system/sw/bin/docker"
    "-Dpodman_path=/run/current-system/sw/bin/podman"
    "-Dcrun_path=/run/current-system/sw/bin/crun"
    "-Dconmon_path=/run/current-system/sw/bin/conmon"
    "-Dsystem_managed=true"
    "-Dcommand_name=${commandName}"
    "-Drunner_name=${runnerName}"
  ];
  doCheck = false; # the tests boot machines (`./check`); a build sandbox has neither root nor systemd

  meta = {
    description = "Runs the coding agent pi under a policy, as an account of its own in a hardened unit";
    license = lib.licenses.asl20;
    platforms = lib.platforms.linux;
    mainProgram = commandName;
  };
}
