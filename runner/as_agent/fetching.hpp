// Asks the reader for files and puts their copies into the agent's home, each in one step.
#pragma once

#include "runner/as_agent/manifest.hpp"
#include "runner/as_agent/writer.hpp"

#include <string>
#include <vector>

namespace pi_agent {

Packet receive_from_reader(FdRef transfer);

// Names what the agent had where its user has something else, up to a number.
class KeptNames {
public:
    explicit KeptNames(FdRef channel) : channel_(channel) {}
    void report(const std::string &path, const std::string &kept);
    void tell_rest() const;

private:
    FdRef channel_;
    std::size_t count_ = 0;
};

// A file to bring in, or only to compare with the copy inside.
struct Wanted {
    std::uint64_t number; // in the listing
    std::string path;
    bool compare;
};

class Fetching {
public:
    Fetching(const WritingPlaces &places, FdRef transfer, FdRef channel, Manifest &manifest, LastDirectory &writing, KeptNames &kept)
        : places_(places), transfer_(transfer), channel_(channel), manifest_(manifest), writing_(writing), kept_(kept)
    {
    }

    void want(Wanted file) { wanted_.push_back(std::move(file)); }
    // Asks for the next files while those asked for before are on their way.
    void fetch();

private:
    std::size_t ask(std::size_t from);
    std::size_t receive_contents(std::size_t first);
    void bring(const Wanted &wanted, FdRef source, HostFacts facts);
    bool settle(const Wanted &wanted, FdRef directory, const std::string &name, FdRef source, const HostFacts &facts);

    const WritingPlaces &places_;
    FdRef transfer_;
    FdRef channel_;
    Manifest &manifest_;
    LastDirectory &writing_;
    KeptNames &kept_;
    std::vector<Wanted> wanted_;
};

} // namespace pi_agent
