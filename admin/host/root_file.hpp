// Files of root's that are replaced in one step: whoever reads them sees the old text or the new one, whatever ends the host meanwhile.
#pragma once

#include "common/base/fd.hpp"

#include <string>
#include <sys/types.h>

namespace pi_agent {

// Makes `name` new in a directory that only root can write, root:root, on disk when this returns; a former one of that name goes. `path` is
// for messages.
void write_beside(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path);

// Gives it the name `final_name`, in the place of what has that.
void move_into_place(FdRef directory, const std::string &name, const std::string &final_name, const std::string &path);

// Both, by way of NAME.new.
void replace_root_file(FdRef directory, const std::string &name, const std::string &text, mode_t mode, const std::string &path);

// A missing one is fine.
void remove_root_file(FdRef directory, const std::string &name, const std::string &path);

} // namespace pi_agent
