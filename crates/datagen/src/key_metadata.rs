//! Key metadata in the JSON form that parquet-mr and pyarrow's KMS API read.
//!
//! The "KMS" of a test wraps a key by base64, so this metadata holds the key
//! itself. It is written only for test keys that stand in a definition.

use serde::Serialize;

use crate::keys::Key;

/// The field order is that of Arrow C++.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyMaterial<'a> {
    key_material_type: &'a str,
    internal_storage: bool,
    is_footer_key: bool,
    #[serde(rename = "kmsInstanceID", skip_serializing_if = "Option::is_none")]
    kms_instance_id: Option<&'a str>,
    #[serde(rename = "kmsInstanceURL", skip_serializing_if = "Option::is_none")]
    kms_instance_url: Option<&'a str>,
    #[serde(rename = "masterKeyID")]
    master_key_id: &'a str,
    #[serde(rename = "wrappedDEK")]
    wrapped_dek: String,
    double_wrapping: bool,
}

fn material(footer: bool, master_key_id: &str, key: &Key) -> Vec<u8> {
    // Only a footer key says which KMS it is from.
    let instance = footer.then_some("DEFAULT");
    let material = KeyMaterial {
        key_material_type: "PKMT1",
        internal_storage: true,
        is_footer_key: footer,
        kms_instance_id: instance,
        kms_instance_url: instance,
        master_key_id,
        wrapped_dek: key.base64(),
        double_wrapping: false,
    };
    // Cannot fail: strings and booleans.
    serde_json::to_vec(&material).unwrap_or_default()
}

pub(crate) fn of_footer_key(key: &Key) -> Vec<u8> {
    material(true, "footer_key", key)
}

pub(crate) fn of_column_key(column: &str, key: &Key) -> Vec<u8> {
    material(false, column, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_what_arrow_reads() {
        let key = Key::new(b"0123456789012345".to_vec(), "k").unwrap();
        assert_eq!(
            String::from_utf8(of_footer_key(&key)).unwrap(),
            r#"{"keyMaterialType":"PKMT1","internalStorage":true,"isFooterKey":true,"kmsInstanceID":"DEFAULT","kmsInstanceURL":"DEFAULT","masterKeyID":"footer_key","wrappedDEK":"MDEyMzQ1Njc4OTAxMjM0NQ==","doubleWrapping":false}"#
        );
        assert_eq!(
            String::from_utf8(of_column_key("a", &key)).unwrap(),
            r#"{"keyMaterialType":"PKMT1","internalStorage":true,"isFooterKey":false,"masterKeyID":"a","wrappedDEK":"MDEyMzQ1Njc4OTAxMjM0NQ==","doubleWrapping":false}"#
        );
    }
}
