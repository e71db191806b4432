# For `callPackage ./contrib/packaging/package.nix { }`.
{
  lib,
  stdenv,
  pkg-config,
  cjson,
  fuse3,
  libedit,
  libseccomp,
  libunistring,
  nettle,
  pcre2,
}:

stdenv.mkDerivation {
  pname = "ggufs";
  version = "0.1.0";

  src = lib.cleanSource ../..;

  nativeBuildInputs = [ pkg-config ];
  buildInputs = [
    cjson
    fuse3
    libedit
    libseccomp
    libunistring
    nettle
    pcre2
  ];

  makeFlags = [ "PREFIX=${placeholder "out"}" ];
  enableParallelBuilding = true;

  doCheck = true;
  checkPhase = ''
    runHook preCheck
    make build/check-kernels
    build/check-kernels
    runHook postCheck
  '';

  meta = {
    description = "Mount GGUF model files as directory trees";
    license = lib.licenses.mit;
    mainProgram = "ggufs";
    platforms = lib.platforms.linux;
  };
}
