// Having files of /etc read, and writing them into the session.
#include "runner/root/errand/host_files.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_agent/places.hpp"
#include "runner/plan/host_view.hpp"
#include "runner/wire/answer.hpp"

#include <algorithm>

namespace pi_agent {

HostFilesReader::HostFilesReader(const AsRoot &root, const Account &agent, const HostView &view) : view_(view)
{
    if (view.view == View::host) return;
    child_.emplace(root, "reader of the host's /etc", agent, std::vector<int>{}, [](const AsUser & /*agent*/, FdRef channel) {
        fault_point("reading-etc");
        for (const auto &name : shown_etc_files())
            send_long_answer(channel, encode_fields(read_etc_file(name)));
    });
}

std::vector<std::string> HostFilesReader::show(const SessionDirectory &session, const std::vector<std::string> &left_out)
{
    std::vector<std::string> notices;
    if (!child_) return notices;
    for (const auto &name : shown_etc_files()) {
        const EtcFile file = decode_fields<EtcFile>(child_->receive_long(child_patience_seconds));
        if (file.state == EtcFileState::too_large)
            notices.push_back("not shown to the agent: /etc/" + name + " (larger than " + std::to_string(host_file_limit >> 20U) +
                              " MiB); the policy's view_paths can show it");
        if (file.state != EtcFileState::read) continue;
        const std::string own = "/etc/" + name;
        if (is_shown(view_, own) || view_.links.contains(own)) continue; // view_paths
        if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
        if (file.target != own && is_shown(view_, file.target) && !session.has("root" + own)) // programs look at where localtime leads
            session.make_link("root" + own, file.target);
        else
            write_whole(session.make_late_file("root" + own), file.content, "the session's " + own);
    }
    child_.reset();
    return notices;
}

} // namespace pi_agent
