// A project, a place for checkpoints beside it, and sessions between them.
#pragma once

#include "common/undo/restore.hpp"

#include "support/temporary_directory.hpp"

#include <sys/stat.h>
#include <thread>

namespace pi_agent::test {

inline std::string random_id()
{
    static int count = 0;
    std::string digits = std::to_string(++count);
    return std::string(32 - digits.size(), '0') + digits;
}

inline std::string read(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

class UndoPlace {
public:
    UndoPlace()
    {
        directory_.make("tree");
        directory_.make("store");
        REQUIRE(chmod((directory_ / "store").c_str(), 0700) == 0);
    }

    [[nodiscard]] std::string at(const std::string &path) const { return directory_ / ("tree/" + path); }
    [[nodiscard]] std::string beside(const std::string &path) const { return directory_ / path; }
    void write(const std::string &path, const std::string &text) const
    {
        std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
        directory_.write("tree/" + path, text);
    }
    void remove(const std::string &path) const { std::filesystem::remove_all(at(path)); }
    void rename(const std::string &path, const std::string &to) const { std::filesystem::rename(at(path), at(to)); }
    [[nodiscard]] UndoStore store() const { return UndoStore::open(directory_ / "store"); }
    [[nodiscard]] UniqueFd root() const { return UniqueFd::adopt(open(at("").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

    [[nodiscard]] CheckpointHead head() const { return {CheckpointKind::session, at(""), time_now(), examine(root(), "a tree").st_dev}; }
    // The start of a session: its whole checkpoint, then time passes, as it does before an agent runs.
    Checkpoint begin(CopyOrder copy = {}, WalkOrder walk = {}) const
    {
        if (copy.size == 0) copy.size = copy.file = 1UL << 30U;
        std::this_thread::sleep_for(tick);
        const auto places = store();
        Checkpoint made = places.begin(head());
        walk.start = made.head.start;
        take_checkpoint(places, made, root(), walk_tree(root(), walk), std::move(copy));
        places.name(made, random_id());
        std::this_thread::sleep_for(tick);
        return made;
    }
    void end(const Checkpoint &checkpoint) const
    {
        store().write(checkpoint, "after", look());
        std::this_thread::sleep_for(tick);
    }
    [[nodiscard]] TreeLook look() const
    {
        WalkOrder walk;
        walk.start = time_now();
        return walk_tree(root(), walk);
    }
    [[nodiscard]] std::vector<TreeChange> changes(const Checkpoint &checkpoint) const
    {
        const auto after = checkpoint.after();
        const UniqueFd top = root();
        return compare_trees(checkpoint.before(), after ? &*after : nullptr, look(), by_copies(checkpoint, top));
    }
    [[nodiscard]] UndoPlan plan(const Checkpoint &checkpoint, const std::vector<std::string> &named = {}) const
    {
        return plan_undo(changes(checkpoint), named);
    }
    std::vector<std::string> undo(const Checkpoint &checkpoint, const std::vector<std::string> &named = {}) const
    {
        return take_back(plan(checkpoint, named), checkpoint, root());
    }
    // "created a", "renamed b from c", in order.
    [[nodiscard]] std::vector<std::string> list(const Checkpoint &checkpoint) const
    {
        std::vector<std::string> lines;
        for (const auto &change : changes(checkpoint))
            lines.push_back(std::string(to_string(change.kind)) + " " + change.path + (change.from.empty() ? "" : " from " + change.from));
        return lines;
    }

    // Everything about the tree that undo brings back: kinds, modes, contents and targets, by path.
    [[nodiscard]] std::map<std::string, std::string> whole() const
    {
        std::map<std::string, std::string> all;
        const auto top = std::filesystem::path(at(""));
        for (const auto &entry : std::filesystem::recursive_directory_iterator(top)) {
            struct stat facts {};
            REQUIRE(lstat(entry.path().c_str(), &facts) == 0);
            std::string text = std::to_string(facts.st_mode) + " ";
            if (S_ISREG(facts.st_mode)) {
                std::ifstream file(entry.path(), std::ios::binary);
                text += std::to_string(facts.st_size) + " ";
                if (facts.st_size < 1 << 20) text.append(std::istreambuf_iterator<char>(file), {});
            }
            if (S_ISLNK(facts.st_mode)) text += std::filesystem::read_symlink(entry.path()).string();
            all[entry.path().lexically_relative(top).string()] = text;
        }
        return all;
    }

    static constexpr auto tick = std::chrono::milliseconds(12); // ctime is as fine as the kernel's clock tick, at least 100 a second

private:
    TemporaryDirectory directory_;
};

} // namespace pi_agent::test
