// Which settings of the user's git pass: runner/plan/git_config.hpp
#include "runner/plan/git_config.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace git_allowed_test {

namespace {

// "name=value", or the name alone.
GitSetting one(const std::string &text)
{
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return {text, std::nullopt};
    return {text.substr(0, equals), text.substr(equals + 1)};
}

bool passes(const std::string &text)
{
    return passes_into_session(one(text));
}

} // namespace

TEST_CASE("what decides over commits, merges and what is shown passes")
{
    for (const char *text : {"core.autocrlf=input",
                             "core.eol=lf",
                             "core.safecrlf=warn",
                             "core.whitespace=trailing-space",
                             "core.quotepath=false",
                             "core.excludesfile=.local-ignore",
                             "init.defaultbranch=trunk",
                             "pull.rebase=true",
                             "push.default=current",
                             "rebase.autosquash",
                             "merge.conflictstyle=zdiff3",
                             "diff.algorithm=histogram",
                             "fetch.prune=true",
                             "color.ui=always",
                             "color.diff.meta=yellow",
                             "log.date=iso",
                             "format.pretty=oneline",
                             "pretty.mine=%h %s",
                             "rerere.enabled=true",
                             "commit.cleanup=scissors",
                             "i18n.commitencoding=latin1",
                             "author.name=x",
                             "committer.email=x@y",
                             "user.useconfigonly=true",
                             "pager.log=false",
                             "advice.detachedhead=false",
                             "protocol.version=2",
                             "alias.st=status --short",
                             "alias.last=log -1",
                             "url.git@github.com:.insteadof=https://github.com/",
                             "url.ssh://git@example.org/.pushinsteadof=https://example.org/",
                             "url.https://mirror.example.org/.insteadof=https://example.org/"})
        CHECK_MESSAGE(passes(text), text);
}

TEST_CASE("what starts a program never passes, however it is written")
{
    for (const char *text : {"core.fsmonitor=true",
                             "core.fsmonitor=/x",
                             "core.sshcommand=ssh -i /x",
                             "core.pager=less",
                             "core.editor=vim",
                             "core.askpass=/x",
                             "core.hookspath=/x",
                             "core.gitproxy=/x",
                             "core.attributesfile=/x",
                             "core.worktree=/x",
                             "core.alternaterefscommand=/x",
                             "sequence.editor=x",
                             "pager.log=less -R",
                             "pager.diff=delta",
                             "diff.external=/x",
                             "diff.x.textconv=y",
                             "diff.x.command=y",
                             "diff.tool=meld",
                             "difftool.x.cmd=y",
                             "merge.x.driver=y",
                             "merge.tool=meld",
                             "mergetool.x.cmd=y",
                             "filter.x.clean=y",
                             "filter.x.smudge=y",
                             "filter.x.process=y",
                             "filter.lfs.process=git-lfs filter-process; x",
                             "filter.lfs.required=true",
                             "credential.helper=store",
                             "credential.https://x.helper=!y",
                             "gpg.program=/x",
                             "gpg.ssh.program=/x",
                             "gpg.ssh.defaultkeycommand=x",
                             "url.ext::sh -c x.insteadof=https://x/",
                             "alias.x=!sh",
                             "alias.x=-c core.pager=x log",
                             "alias.x=--exec-path=/x log",
                             "alias.x=",
                             "alias.x",
                             "alias.x.command=!sh",
                             "include.path=/x",
                             "includeif.gitdir:/.path=/x",
                             "submodule.x.update=!cmd",
                             "interactive.difffilter=x",
                             "init.templatedir=/x",
                             "remote.pushdefault=ext::sh",
                             "remote.x.url=ext::sh",
                             "remote.x.vcs=y",
                             "remote.x.uploadpack=y",
                             "protocol.ext.allow=always",
                             "protocol.allow=always",
                             "sendemail.sendmailcmd=x",
                             "trailer.x.command=y",
                             "trailer.x.cmd=y",
                             "uploadpack.packobjectshook=x",
                             "hook.x.command=y",
                             "man.x.cmd=y",
                             "browser.x.cmd=y",
                             "instaweb.httpd=x",
                             "tar.x.command=y",
                             "guitool.x.cmd=y",
                             "gc.recentobjectshook=x",
                             "lfs.customtransfer.x.path=y",
                             "core.unknown=x",
                             "new.thing=x"})
        CHECK_MESSAGE(!passes(text), text);
}

TEST_CASE("what holds a password or a token, or needs a key of the user's, does not pass")
{
    for (const char *text :
         {"url.https://token@github.com/.insteadof=https://github.com/", "url.https://x:y@github.com/.insteadof=https://github.com/",
          "url.ssh://x:y@h/.insteadof=https://h/", "url.https://h/.insteadof=https://me:pw@h/", "url.https://h/?t.insteadof=x",
          "alias.cl=clone -c http.extraHeader=x", "remote.pushdefault=https://t@h/x", "format.headers=Authorization: x"}) {
        CHECK_MESSAGE(!passes(text), text);
        CHECK_MESSAGE(is_kept_for_its_secret(one(text)), std::string(text));
    }
    for (const char *text :
         {"http.extraheader=Authorization: Bearer x", "http.cookiefile=/x", "http.proxy=http://a:b@h", "user.signingkey=x",
          "commit.gpgsign=true", "tag.gpgsign=true", "log.showsignature=true", "sendemail.smtppass=x"})
        CHECK_MESSAGE(!passes(text), text);
}

TEST_CASE("what is no name of git's does not pass")
{
    for (const std::string text : {"", "core", ".", "core.", "color.\n[core]\n\tpager=x", "color.ui\n\tpager=x", "color.a\nb.c=x",
                                   "color ui.x=y", "color.x y=z", "url..insteadof\n=x", "pretty.a]=x"})
        CHECK_MESSAGE(!passes(text), text);
    CHECK_FALSE(passes_into_session({std::string("color.a\0b", 9), "x"}));
    CHECK_FALSE(passes_into_session({"core.eol", std::string("l\0f", 3)}));
}

TEST_CASE("a file of the user's is copied, and one of the project named as it is")
{
    CHECK(copied_git_file("core.excludesfile") == "ignore");
    CHECK(copied_git_file("core.hookspath").empty());
    CHECK(git_file_inside("ignore") == "/run/pi-agent/git/ignore");
    CHECK(passes("core.excludesfile=ignored/here"));
    CHECK(passes("commit.template=.gitmessage"));
    for (const char *value : {"/etc/shadow", "~/x", "~bob/x", "%(prefix)/x", ":(optional)x", ""})
        CHECK_MESSAGE(!passes("core.excludesfile=" + std::string(value)), value);
    CHECK_FALSE(passes("core.excludesfile"));
}

} // namespace git_allowed_test
