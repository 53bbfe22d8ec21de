//! Modules of the registry and their versions.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use taco_control_plane::{
    ModuleFilter, ModulePatch, ModuleRef, ModuleSelection, ModuleVersionPatch, ModuleVersionView, ModuleView,
    NewModule, NewModuleVersion, SignedUrlPurpose,
};
use taco_domain::module_version::ModuleVersionStatus;
use taco_domain::registry_address::RegistryName;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::organizations;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::signed_url::signed;

pub(crate) const KIND: &str = "registry-modules";
const VERSION_KIND: &str = "registry-module-versions";
const NO_CODE_KIND: &str = "no-code-modules";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    namespace: &'a str,
    provider: &'a str,
    registry_name: RegistryName,
    status: &'static str,
    no_code: bool,
    version_statuses: Vec<VersionStatus<'a>>,
    permissions: Permissions,
    vcs_repo: Option<()>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Serialize)]
struct VersionStatus<'a> {
    version: &'a str,
    status: ModuleVersionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permissions {
    can_delete: bool,
    can_resync: bool,
    can_retry: bool,
}

/// Path of a module within the API.
fn path_of(view: &ModuleView) -> String {
    let (organization, module) = (&view.org.entry().name, &view.module);
    let (registry, namespace) = (module.registry().word(), view.namespace());
    let address = format!("{registry}/{namespace}/{}/{}", module.name, module.provider);
    format!("/api/v2/organizations/{organization}/registry-modules/{address}")
}

fn no_code_id(view: &ModuleView) -> Identifier {
    Identifier::new(NO_CODE_KIND, format!("nocode-{}", view.module.id.characters()))
}

impl Resource for ModuleView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["no-code-modules"];

    fn object(&self, request: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let may = self.may_manage(&request.caller).allowed;
        let status = |version: &taco_domain::module_version::ModuleVersion| version.status;
        let versions = self.versions();
        let version_statuses = versions.iter().map(|version| VersionStatus {
            version: version.version.as_str(),
            status: status(version),
            error: version.error.as_deref(),
        });
        let module = &self.module;
        let attributes = Attributes {
            name: module.name.as_str(),
            namespace: self.namespace(),
            provider: module.provider.as_str(),
            registry_name: module.registry(),
            status: self.status(),
            no_code: module.no_code,
            version_statuses: version_statuses.collect(),
            permissions: Permissions { can_delete: may, can_resync: may, can_retry: may },
            vcs_repo: None,
            created_at: module.created_at,
            updated_at: module.updated_at,
        };
        Ok(ResourceObject::new(KIND, module.id, &attributes)
            .has_one("organization", organizations::identifier(self.org.entry().name.as_str()))
            .has_many("no-code-modules", module.no_code.then(|| no_code_id(self)))
            .link("self", path_of(self)))
    }

    async fn include(&self, _: &str, _: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        if self.module.no_code {
            let id = no_code_id(self).id;
            let attributes = json!({ "enabled": true, "version-pin": self.latest().map(|it| it.version.as_str()) });
            document.include(
                ResourceObject::new(NO_CODE_KIND, id, &attributes)
                    .has_one("organization", organizations::identifier(self.org.entry().name.as_str()))
                    .has_one("registry-module", Identifier::new(KIND, self.module.id)),
            );
        }
        Ok(())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct VersionAttributes<'a> {
    version: &'a str,
    status: ModuleVersionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    source: &'static str,
    commit_sha: Option<&'a str>,
    deprecation: Option<Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

fn version_object(view: &ModuleVersionView, upload: Option<String>) -> ResourceObject {
    let version = &view.version;
    let deprecation = version.deprecation.as_ref().map(|deprecation| {
        json!({ "deprecated-status": "Deprecated", "reason": deprecation.reason, "link": deprecation.link })
    });
    let attributes = VersionAttributes {
        version: version.version.as_str(),
        status: version.status,
        error: version.error.as_deref(),
        source: "tfe-api",
        commit_sha: version.commit_sha.as_deref(),
        deprecation,
        created_at: version.created_at,
        updated_at: version.updated_at,
    };
    let object = ResourceObject::new(VERSION_KIND, version.id, &attributes)
        .has_one("registry-module", Identifier::new(KIND, version.module))
        .link("self", format!("{}/{}", path_of(&view.module), version.version));
    match upload {
        Some(address) => object.link("upload", address),
        None => object,
    }
}

impl Resource for ModuleVersionView {
    const KIND: &'static str = VERSION_KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        Ok(version_object(self, None))
    }
}

/// A version that was announced just now, with the address to which its archive is sent.
struct Announced(ModuleVersionView, String);

impl Resource for Announced {
    const KIND: &'static str = VERSION_KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        Ok(version_object(&self.0, Some(self.1.clone())))
    }
}

/// The module that a path names: by its id, by its whole address, or by the short one of the private registry.
fn module_in(request: &ApiRequest) -> Result<ModuleRef, ApiError> {
    if let Ok(id) = request.name("module") {
        return Ok(ModuleRef::Id(id.parse().map_err(|_| ApiError::not_found())?));
    }
    let ModuleSelection { organization, place, name, provider } = selection_in(request)?;
    let (registry, namespace) = place.unwrap_or_else(|| (RegistryName::Private, organization.clone()));
    let provider = provider.ok_or_else(ApiError::not_found)?;
    Ok(ModuleRef::Named { organization, registry, namespace, name, provider })
}

fn selection_in(request: &ApiRequest) -> Result<ModuleSelection, ApiError> {
    let organization = request.organization()?;
    // Older addresses do not say where.
    let place = match request.name("registry") {
        Ok(word) => {
            let registry = word.parse().map_err(|_| ApiError::not_found())?;
            Some((registry, request.name("namespace")?.to_owned()))
        }
        Err(_) => None,
    };
    Ok(ModuleSelection {
        organization: organization.to_owned(),
        place,
        name: request.name("module_name")?.to_owned(),
        provider: request.name("module_provider").ok().map(str::to_owned),
    })
}

/// `GET /api/v2/organizations/{organization}/registry-modules`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let page = request.query.page()?;
    let registry = request.query.get("filter[registry_name]").map(str::parse).transpose()?;
    let filter = ModuleFilter {
        search: request.query.text("q"),
        provider: request.query.text("filter[provider]"),
        registry,
        organization: request.query.text("filter[organization_name]"),
    };
    let organization = request.organization()?;
    let listed = request.control_plane.registry_modules(&request.caller, organization, &filter, page).await?;
    request.page_from_none(listed).await
}

/// `POST /api/v2/organizations/{organization}/registry-modules`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let new: NewModule = request.attributes(KIND).await?;
    let organization = request.organization()?;
    request.created(&request.control_plane.create_registry_module(&request.caller, organization, new).await?)
}

/// `GET …/registry-modules/…`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let module = module_in(&request)?;
    request.one(&request.control_plane.registry_module(&request.caller, &module).await?).await
}

/// `PATCH …/registry-modules/…`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let module = module_in(&request)?;
    let patch: ModulePatch = request.attributes(KIND).await?;
    request.changed(&request.control_plane.update_registry_module(&request.caller, &module, patch).await?)
}

/// `DELETE …/registry-modules/{registry}/{namespace}/{module_name}[/{module_provider}]`, and `POST` at older addresses.
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    let selection = selection_in(&request)?;
    request.control_plane.delete_registry_modules(&request.caller, &selection).await?;
    no_content()
}

/// `POST …/versions`
pub(crate) async fn create_version(request: ApiRequest) -> Answer {
    let module = module_in(&request)?;
    let new: NewModuleVersion = request.attributes(VERSION_KIND).await?;
    let made = request.control_plane.create_module_version(&request.caller, &module, new).await?;
    let upload = signed(&request, SignedUrlPurpose::UploadModule, made.version.id);
    request.created(&Announced(made, upload))
}

/// `GET …/{version}`
pub(crate) async fn read_version(request: ApiRequest) -> Answer {
    let module = module_in(&request)?;
    let version = request.name("version")?;
    request.one(&request.control_plane.module_version(&request.caller, &module, Some(version)).await?).await
}

/// `GET …/version?module_version=1.0.0`
pub(crate) async fn read_version_in_query(request: ApiRequest) -> Answer {
    let module = module_in(&request)?;
    let version = request.query.get("module_version");
    request.one(&request.control_plane.module_version(&request.caller, &module, version).await?).await
}

/// `PATCH …/{version}`
pub(crate) async fn update_version(request: ApiRequest) -> Answer {
    let module = module_in(&request)?;
    let patch: ModuleVersionPatch = request.attributes(VERSION_KIND).await?;
    let version = request.name("version")?;
    request.changed(&request.control_plane.update_module_version(&request.caller, &module, version, patch).await?)
}

/// `DELETE …/{version}`, and `POST` at an older address.
pub(crate) async fn delete_version(request: ApiRequest) -> Answer {
    let module = module_in(&request)?;
    request.control_plane.delete_module_version(&request.caller, &module, request.name("version")?).await?;
    no_content()
}

/// `POST /api/v2/organizations/{organization}/registry-modules/vcs`
pub(crate) async fn create_from_vcs(request: ApiRequest) -> Answer {
    // Who may not publish learns nothing else.
    let organization = request.control_plane.organization(&request.caller, request.organization()?).await?;
    let org = organization.org;
    request.caller.require(taco_domain::permission::Action::ManageModules, org.resource(), "module")?;
    let detail = "Modules from repositories come with version control connections, which this server does not have yet: \
                  create the module without vcs-repo and upload its versions, for instance with \
                  `taco registry module publish`";
    Err(ApiError::invalid("/data/attributes/vcs-repo", detail))
}
