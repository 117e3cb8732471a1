// The record where there is no journal: one JSON line an event, in a file that only root can read.
#pragma once

#include "common/record/journal.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pi_agent {

extern const char *const record_file_path; // /var/log/pi-agent/record.jsonl

// Appends one event. Throws Failure when it is not there as a whole afterwards.
void append_to_record_file(const std::vector<JournalField> &fields);

// Every line, oldest first, without its end; none where there is no such file. Throws Failure(configuration) when others could have written
// it. For root: nobody else can look.
void read_record_file(const std::function<void(const std::string &line)> &visit);

} // namespace pi_agent
