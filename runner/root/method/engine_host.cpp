// Asks docker's daemon for what a session needs, or reads the lists that root's podman keeps of images and their layers, without running
// podman. And shows the session's view over an image.

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/root/method/sandbox.hpp"

#include <sys/statvfs.h>

namespace pi_agent {

namespace {

constexpr int daemon_patience_seconds = 10;
constexpr std::size_t list_size_limit = std::size_t{16} << 20U; // bytes
constexpr std::size_t digits_of_id = 64;
constexpr std::string_view digest_prefix = "sha256:";

bool is_id(std::string_view text)
{
    return text.size() == digits_of_id && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string_view without_prefix(std::string_view name)
{
    return name.starts_with(digest_prefix) ? name.substr(digest_prefix.size()) : name;
}

// The text under a key of an engine's answer or list; empty without one.
std::string text_of(const nlohmann::json &object, const char *key)
{
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

[[noreturn]] void refuse_image(const SandboxPolicy &policy, const std::string &reason)
{
    throw Failure(FailureKind::sandbox_method,
                  "the image " + policy.image + " of sandbox.image (" + to_string(policy.image_where) + ") " + reason);
}

// --- docker's

void require_cgroupfs(const nlohmann::json &facts)
{
    const std::string driver = text_of(facts, "CgroupDriver");
    if (driver == "cgroupfs") return;
    throw Failure(FailureKind::sandbox_method,
                  "docker's daemon has the control group driver " + escape_for_display(driver.empty() ? "none" : driver) +
                      ", which puts containers outside the session's unit and its limits; write {\"exec-opts\": "
                      "[\"native.cgroupdriver=cgroupfs\"]} to /etc/docker/daemon.json and restart docker, or choose another method");
}

EngineHost require_docker(const AsRoot &root, const SandboxPolicy &policy)
{
    EngineHost host;
    host.docker_group = require_docker_socket(root);
    const Deadline deadline = in_seconds(daemon_patience_seconds);
    require_cgroupfs(ask_docker(root, "/info", deadline).body);
    const DockerAnswer image = ask_docker(root, "/images/" + policy.image + "/json", deadline);
    if (image.status == 404)
        refuse_image(policy, "is not on this host, and a start pulls no image; the administrator runs: docker pull " + policy.image +
                                 " (or make it: docker import)");
    host.image.id = require_plain_image(image.body, policy);
    return host;
}

// --- podman's

// "host:5000/a/b", ":12" and "@sha256:…": the second begins after the last slash.
struct ImageName {
    std::string repository, tag, digest;
};

ImageName parse_image_name(const std::string &text)
{
    ImageName name;
    const std::size_t at = text.find('@');
    if (at != std::string::npos) name.digest = text.substr(at + 1);
    const std::string rest = text.substr(0, at);
    const std::size_t slash = rest.rfind('/');
    const std::size_t colon = rest.find(':', slash == std::string::npos ? 0 : slash);
    name.repository = rest.substr(0, colon);
    if (colon != std::string::npos) name.tag = rest.substr(colon + 1);
    return name;
}

// The repositories that it can mean, with their registry.
std::vector<std::string> repositories_of(const std::string &repository)
{
    const std::size_t slash = repository.find('/');
    const std::string first = repository.substr(0, slash);
    if (slash != std::string::npos && (first == "localhost" || first.find_first_of(".:") != std::string::npos)) return {repository};
    return {"localhost/" + repository, std::string("docker.io/") + (slash == std::string::npos ? "library/" : "") + repository};
}

// The list has an image's digest beside its names; a name has it too where the image was pulled by it.
bool is_called(const nlohmann::json &image, const std::string &repository, const ImageName &wanted)
{
    const auto names = image.find("names");
    return names != image.end() && names->is_array() && std::any_of(names->begin(), names->end(), [&](const nlohmann::json &text) {
               const ImageName name = parse_image_name(text.is_string() ? text.get<std::string>() : "");
               if (name.repository != repository) return false;
               if (!wanted.digest.empty()) return name.digest == wanted.digest || text_of(image, "digest") == wanted.digest;
               return name.tag == (wanted.tag.empty() ? "latest" : wanted.tag);
           });
}

// Nobody but root can change the list, and what is above it. Null where podman has no such list.
nlohmann::json read_list(const std::string &name, const SandboxPolicy &policy)
{
    const std::string path = std::string(podman_images) + "/" + name;
    const auto text =
        if_there([&] { return std::optional(read_trusted_file(path, list_size_limit, "podman's list of images or layers")); });
    if (!text) return nullptr;
    nlohmann::json list = nlohmann::json::parse(*text, nullptr, false);
    if (!list.is_array()) refuse_image(policy, "cannot be looked up: " + path + " is not a list of podman's");
    return list;
}

const nlohmann::json *find_by_id(const nlohmann::json &list, const std::string &id)
{
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto &one) { return one.is_object() && text_of(one, "id") == id; });
    return found == list.end() ? nullptr : &*found;
}

// Its files. With vfs, each layer has those of all below it, too.
UniqueFd open_layer(const std::string &driver, const std::string &id)
{
    const bool has_differences = driver == "overlay";
    const std::string place = std::string(podman_images) + (has_differences ? "/overlay/" + id : "/vfs/dir");
    const UniqueFd kept = open_trusted(place, O_PATH | O_DIRECTORY, "podman's layers of images");
    return open_beneath(kept, has_differences ? "diff" : id, O_RDONLY | O_DIRECTORY);
}

// Of each name, the topmost layer that has it decides.
std::map<std::string, std::string> links_at_top(const std::string &driver, const std::vector<std::string> &layers)
{
    std::map<std::string, std::string> links;
    std::set<std::string> seen;
    for (const std::string &id : layers) {
        const UniqueFd layer = open_layer(driver, id);
        for (const std::string &name : names_in(layer)) {
            const std::string target = seen.insert(name).second ? read_link(layer, name) : "";
            if (!target.empty()) links.emplace(name, target);
        }
        if (driver != "overlay") break;
    }
    return links;
}

EngineHost find_podmans_image(const SandboxPolicy &policy)
{
    for (const std::string driver : {"overlay", "vfs"}) {
        const nlohmann::json images = read_list(driver + "-images/images.json", policy);
        const std::string id = find_podman_image(images, policy.image);
        if (id.empty()) continue;
        const auto layers = layers_of_image(images, read_list(driver + "-layers/layers.json", policy), id);
        if (layers.empty())
            refuse_image(policy, "has no layers that podman's list of layers knows; the administrator pulls or makes it again");
        return {{id, driver}, links_at_top(driver, layers)};
    }
    refuse_image(policy, std::string("is not among root's images in ") + podman_images +
                             ", and a start pulls no image; the administrator runs as root: podman pull " + policy.image +
                             " (or makes it: podman import)");
}

// --- The view over an image.

// An engine fills proc and dev, a tmpfs home and root, and the plan's binds the others.
constexpr std::array<std::string_view, 7> filled = {"proc", "sys", "dev", "run", "tmp", "home", "root"};

// "usr/lib" for a symlink "lib" of a merged /usr; empty for any other symlink.
std::string program_tree_of(FdRef top, const std::string &name)
{
    std::string target = read_link(top, name);
    if (!target.empty() && target.front() == '/') target.erase(0, 1);
    const UniqueFd tree = target.compare(0, 4, "usr/") == 0 ? find_beneath(top, target, O_PATH | O_DIRECTORY) : UniqueFd();
    return tree ? target : "";
}

// docker cannot make a mount point in a tree that is bound read-only. In the host's own trees it already exists, or docker says that it is
// missing.
void make_place(FdRef top, const std::string &path)
{
    UniqueFd current = duplicate(top);
    for (const std::string &name : path_components(path)) {
        if (!current) return;
        const bool is_new = mkdirat(current.get(), name.c_str(), 0755) == 0;
        if (!is_new && errno != EEXIST && errno != EROFS) throw_errno("creating a mount point");
        current = find_beneath(current, name, O_RDONLY | O_DIRECTORY);
        if (is_new && (!current || fchmod(current.get(), 0755) != 0)) throw_errno("creating a mount point");
    }
}

// docker makes a mount read-only by setting all of its flags again, and takes nosuid and nodev away: a mount that is already read-only is
// left alone.
bool must_be_made_read_only(const std::string &source)
{
    struct statvfs facts {};
    if (statvfs(source.c_str(), &facts) != 0) throw_errno("looking at the session's tree");
    return (facts.f_flag & ST_RDONLY) == 0;
}

void make_empty_file(FdRef top, const std::string &path)
{
    const UniqueFd file = open_at(top, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK, 0444);
    if (!file && errno != EEXIST && errno != EROFS) throw_errno("creating a place for " + path);
    if (file && fchmod(file.get(), 0444) != 0) throw_errno("creating a place for " + path);
    struct stat facts {};
    if (fstatat(top.get(), path.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode))
        throw Failure(FailureKind::sandbox_method,
                      "docker mounts a file at /" + path +
                          ", and this host has no regular file there, as view: host needs; create one, or use view: minimal");
}

} // namespace

std::string find_podman_image(const nlohmann::json &list, const std::string &name)
{
    const std::string_view digits = without_prefix(name);
    const ImageName wanted = parse_image_name(name);
    const std::vector<std::string> repositories = is_id(digits) ? std::vector<std::string>{""} : repositories_of(wanted.repository);
    for (const std::string &repository : repositories)
        for (const auto &image : list) {
            std::string id = image.is_object() ? text_of(image, "id") : "";
            if (is_id(id) && (repository.empty() ? id == digits : is_called(image, repository, wanted))) return id;
        }
    return "";
}

std::vector<std::string> layers_of_image(const nlohmann::json &images, const nlohmann::json &layers, const std::string &id)
{
    std::vector<std::string> chain;
    const nlohmann::json *entry = find_by_id(images, id);
    std::string next = entry == nullptr ? "" : text_of(*entry, "layer");
    while (is_id(next) && (entry = find_by_id(layers, next)) != nullptr && chain.size() < layers.size()) {
        chain.push_back(next);
        next = text_of(*entry, "parent");
    }
    if (!next.empty()) chain.clear(); // one is missing
    return chain;
}

std::vector<Bind> lay_over_links(std::vector<Bind> tree, const std::string &top, const EngineHost &host, const SandboxPolicy &policy)
{
    for (const auto &[name, target] : host.links) {
        const auto place = std::find_if(tree.begin(), tree.end(), [&, &link = name](const Bind &one) { return one.target == "/" + link; });
        if (place == tree.end() && std::find(filled.begin(), filled.end(), name) == filled.end()) continue;
        if (place != tree.end() && place->source == top + "/" + target.substr(target.front() == '/' ? 1 : 0))
            tree.erase(place); // it leads into another part of the tree, as the host's own does
        else
            refuse_image(policy, "has a link at /" + name + ", to " + escape_for_display(target) +
                                     ", and a session needs a directory there, or the link that this host has; use an image of this host's "
                                     "release, or one without that link");
    }
    return tree;
}

EngineHost require_engine(const AsRoot &root, const SandboxPolicy &policy)
{
    require_method_programs(policy.method);
    if (policy.method == SandboxMethod::docker) return require_docker(root, policy);
    return policy.image.empty() ? EngineHost() : find_podmans_image(policy);
}

std::string require_plain_image(const nlohmann::json &description, const SandboxPolicy &policy)
{
    std::string id = text_of(description, "Id");
    if (is_id(id) || !is_id(without_prefix(id))) refuse_image(policy, "has no id, by the answer of docker's daemon");
    if (!defence_is_on("docker:plain-image")) return id;
    const nlohmann::json config = description.value("Config", nlohmann::json::object());
    const nlohmann::json variables = config.is_object() ? config.value("Env", nlohmann::json()) : nlohmann::json();
    for (const auto &variable : variables) {
        if (const std::string text = variable.is_string() ? variable.get<std::string>() : ""; text.compare(0, 5, "PATH=") != 0)
            refuse_image(policy,
                         "sets the variable " + escape_for_display(text.substr(0, text.find('='))) +
                             ", which would reach the launcher too; use an image that sets no variables (docker import makes such)");
    }
    if (const nlohmann::json volumes = config.is_object() ? config.value("Volumes", nlohmann::json()) : nlohmann::json(); !volumes.empty())
        refuse_image(
            policy, "declares volumes, which the agent would see beside its view; use an image without volumes (docker import makes such)");
    return id;
}

std::vector<Bind> show_tree(const SandboxPlan &plan)
{
    const UniqueFd top = open_or_throw("opening the session's tree", plan.root_directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    std::vector<Bind> shown;
    const auto show = [&](const std::string &source, const std::string &target) {
        shown.push_back({plan.root_directory + source, target, must_be_made_read_only(plan.root_directory + source)});
    };
    for (const auto &name : names_in(top)) {
        struct stat facts {};
        if (std::find(filled.begin(), filled.end(), name) != filled.end()) continue;
        if (fstatat(top.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) throw_errno("looking at the session's tree");
        if (S_ISLNK(facts.st_mode)) {
            if (const std::string tree = program_tree_of(top, name); !tree.empty()) show("/" + tree, "/" + name);
        } else if (S_ISDIR(facts.st_mode)) {
            show("/" + name, "/" + name);
        }
    }
    for (const Bind &bind : plan.binds)
        if (std::any_of(shown.begin(), shown.end(), [&](const Bind &one) { return is_within(bind.target, one.target); }))
            make_place(top, bind.target.substr(1));
    for (const auto &file : plan.late_files) {
        make_empty_file(top, file.substr(1));
        show(file, file);
    }
    return shown;
}

} // namespace pi_agent
