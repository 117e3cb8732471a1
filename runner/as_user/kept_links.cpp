// Follows the text of a link, component by component, as long as it stays in the tree.
#include "runner/as_user/kept_links.hpp"

#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"

#include <algorithm>
#include <deque>
#include <fcntl.h>

namespace pi_agent {

namespace {

using Components = std::vector<std::string>;

std::string path_of(const Components &components)
{
    std::string path;
    for (const auto &one : components)
        path = join_path(path, one);
    return path;
}

Components above(const std::string &path)
{
    return path_components(split_last(path).first);
}

class WayInTree {
public:
    WayInTree(const ListedTree &tree, const std::string &link, const MayLeadTo &may_lead_to)
        : tree_(tree), may_lead_to_(may_lead_to), at_(above(link))
    {
    }

    // False where it leaves the tree.
    bool follow(const std::string &target)
    {
        if (!go_on_with(target)) return false;
        while (!ahead_.empty()) {
            const std::string name = std::move(ahead_.front());
            ahead_.pop_front();
            if (!(name == ".." ? step_back() : step(name))) return false;
        }
        return may_lead_to_(path_of(at_));
    }

    [[nodiscard]] const Components &end() const noexcept { return at_; }

private:
    bool go_on_with(const std::string &target)
    {
        if (target.empty() || ++links_ > most_links) return false;
        Components parts = path_components(target);
        if (target.front() == '/' && !begin_at_top(parts)) return false;
        ahead_.insert(ahead_.begin(), parts.begin(), parts.end());
        return true;
    }

    // The text decides, as it does in an agents' directory: this looks at nothing outside.
    bool begin_at_top(Components &parts)
    {
        for (const auto &name : tree_.names) {
            const Components own = path_components(name);
            if (parts.size() < own.size() || !std::equal(own.begin(), own.end(), parts.begin())) continue;
            parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(own.size()));
            at_.clear();
            return true;
        }
        return false;
    }

    bool step_back()
    {
        if (at_.empty() || !is_directory_) return false;
        at_.pop_back();
        return true;
    }

    bool step(const std::string &name)
    {
        Components next = at_;
        next.push_back(name);
        const std::string path = path_of(next);
        const UniqueFd place = find_beneath(tree_.top->fd, path, O_PATH);
        struct stat facts {};
        if (!place || fstat(place.get(), &facts) != 0) return false;
        // A symlink on the way is a symlink inside only if the agent gets it unchanged.
        if (S_ISLNK(facts.st_mode)) return may_lead_to_(path) && go_on_with(read_link(place, ""));
        is_directory_ = S_ISDIR(facts.st_mode);
        at_ = std::move(next);
        return is_directory_ || S_ISREG(facts.st_mode);
    }

    const ListedTree &tree_;
    const MayLeadTo &may_lead_to_;
    Components at_; // no link among them
    std::deque<std::string> ahead_;
    bool is_directory_ = true; // what is at `at_`
    int links_ = 0;
};

std::string way_from(const Components &from, const Components &to)
{
    const auto [left, right] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
    Components way(static_cast<std::size_t>(from.end() - left), "..");
    way.insert(way.end(), right, to.end());
    return way.empty() ? "." : path_of(way);
}

} // namespace

std::optional<std::string> find_kept_link(const ListedTree &tree, const std::string &path, const std::string &target,
                                          const MayLeadTo &may_lead_to)
{
    WayInTree way(tree, path, may_lead_to);
    if (!way.follow(target)) return std::nullopt;
    return target.front() == '/' ? way_from(above(path), way.end()) : target;
}

} // namespace pi_agent
