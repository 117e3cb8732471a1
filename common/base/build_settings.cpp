// The only file that sees what the build was configured with: the settings of meson.build.
#include "common/base/build_settings.hpp"

namespace pi_agent::build {

#include "build_settings.inc"

} // namespace pi_agent::build
