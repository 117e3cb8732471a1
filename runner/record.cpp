// Journal entries of the runner, through spdlog's systemd sink.
#include "runner/record.hpp"

#include "common/escape.hpp"

#include <spdlog/sinks/systemd_sink.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace pi_agent {

namespace {

spdlog::logger &journal()
{
    static spdlog::logger logger("pi-agent-runner", std::make_shared<spdlog::sinks::systemd_sink_st>("pi-agent-runner"));
    return logger;
}

} // namespace

void record_started(const std::string &id, const Account &user, const Account &agent, const std::string &project, Program program)
{
    journal().info("session {} started: user {}, agent account {}, project {}{}", id, user.name, agent.name, escape_for_display(project),
                   program == Program::shell ? ", a shell in the agent's place" : "");
}

void record_ended(const std::string &id, const AgentEnded &ended)
{
    journal().info("session {} ended: {} {}", id, ended.by_signal ? "signal" : "exit code", ended.value);
}

void record_refused(const std::string &user, const std::string &text)
{
    journal().warn("refused {}: {}", escape_for_display(user), escape_for_display(text));
}

void record_problem(const std::string &id, const std::string &text)
{
    journal().error("session {}: {}", id, escape_for_display(text));
}

} // namespace pi_agent
