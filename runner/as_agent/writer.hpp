// The writing half of the config sync: runs as the agent, creates everything beneath the agent's home, follows no link.
#pragma once

#include "common/host/identity.hpp"

#include "common/policy/policy.hpp"

namespace pi_agent {

// Descriptors that root opened; all borrowed.
struct WritingPlaces {
    FdRef home;
    FdRef staging;  // a directory of the agent's account on the home's file system, out of the agent's sight: new files are made there
    FdRef manifest; // O_RDWR
    FdRef spare_manifest;  // O_RDWR
    FdRef locked_settings; // gets a copy of the merged settings.json; -1: none wanted
};

// A document is merged by key instead of being copied.
struct DocumentRule {
    std::string managed = "{}"; // JSON text of an object
};

struct WritingPlan {
    ConfigClasses classes;
    std::map<std::string, DocumentRule> documents; // by name, as in ReadingPlan
    std::set<std::string> managed_providers;       // with keys in the managed environment
    std::set<std::string> held_providers = {};     // their keys are outside; a login of the user's or the agent's is left as it is
    std::string held_models = "{}";                // over the managed models.json: an entry there would lead pi elsewhere
    FdRef defaults = FdRef(-1);                    // what the home gets first (runner/as_agent/replacement.hpp); -1: nothing
    std::string project_alias = {};                // a link to the project is made in the home (runner/as_agent/home.hpp); empty: none
    std::string project_path = {};                 // where it leads
};

// With the held models in the managed ones.
WritingPlan with_held_models(WritingPlan plan);

constexpr const char *answer_rewritten = "rewritten"; // at most once: root must now replace the manifest by the spare one

// Furnishes the home, receives from the reader over `transfer` and brings the home in line: deletes what the host deleted, and replaces
// each file atomically. It changes nothing before it found every document valid. Sends notices and `answer_rewritten` over `channel`, then
// one empty answer.
void write_config(const AsUser &agent, const WritingPlaces &places, const WritingPlan &plan, FdRef transfer, FdRef channel);

} // namespace pi_agent
