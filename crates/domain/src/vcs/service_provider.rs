//! Kinds of forges, as Terraform Cloud's API names them, and Gitea beside them.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::attribute::{InvalidAttribute, shown};

/// Kind of a forge that repositories are at.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum ServiceProvider {
    AdoServer,
    AdoServices,
    BitbucketDataCenter,
    BitbucketHosted,
    BitbucketServer,
    BitbucketServerLegacy,
    Gitea,
    Github,
    GithubEnterprise,
    GitlabCommunityEdition,
    GitlabEnterpriseEdition,
    GitlabHosted,
}

impl ServiceProvider {
    pub const ALL: [Self; 12] = [
        Self::AdoServer,
        Self::AdoServices,
        Self::BitbucketDataCenter,
        Self::BitbucketHosted,
        Self::BitbucketServer,
        Self::BitbucketServerLegacy,
        Self::Gitea,
        Self::Github,
        Self::GithubEnterprise,
        Self::GitlabCommunityEdition,
        Self::GitlabEnterpriseEdition,
        Self::GitlabHosted,
    ];

    /// Its word in the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::AdoServer => "ado_server",
            Self::AdoServices => "ado_services",
            Self::BitbucketDataCenter => "bitbucket_data_center",
            Self::BitbucketHosted => "bitbucket_hosted",
            Self::BitbucketServer => "bitbucket_server",
            Self::BitbucketServerLegacy => "bitbucket_server_legacy",
            Self::Gitea => "gitea",
            Self::Github => "github",
            Self::GithubEnterprise => "github_enterprise",
            Self::GitlabCommunityEdition => "gitlab_community_edition",
            Self::GitlabEnterpriseEdition => "gitlab_enterprise_edition",
            Self::GitlabHosted => "gitlab_hosted",
        }
    }

    /// Its name for people.
    pub fn display_name(self) -> &'static str {
        match self {
            Self::AdoServer => "Azure DevOps Server",
            Self::AdoServices => "Azure DevOps Services",
            Self::BitbucketDataCenter => "Bitbucket Data Center",
            Self::BitbucketHosted => "Bitbucket Cloud",
            Self::BitbucketServer => "Bitbucket Server",
            Self::BitbucketServerLegacy => "Bitbucket Server Legacy",
            Self::Gitea => "Gitea",
            Self::Github => "GitHub",
            Self::GithubEnterprise => "GitHub Enterprise",
            Self::GitlabCommunityEdition => "GitLab Community Edition",
            Self::GitlabEnterpriseEdition => "GitLab Enterprise Edition",
            Self::GitlabHosted => "GitLab.com",
        }
    }
}

impl FromStr for ServiceProvider {
    type Err = InvalidAttribute;

    fn from_str(text: &str) -> Result<Self, InvalidAttribute> {
        Self::ALL.into_iter().find(|provider| provider.word() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::word).join(", ");
            let detail = format!("Service provider is one of {allowed}, and not {}", shown(text));
            InvalidAttribute::new("service-provider", detail)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_as_it_is_written() {
        for provider in ServiceProvider::ALL {
            assert_eq!(provider.word().parse(), Ok(provider));
            assert_eq!(serde_json::to_value(provider).expect("JSON"), provider.word());
        }
        assert_eq!("svn".parse::<ServiceProvider>().expect_err("unknown").attribute, "service-provider");
    }
}
