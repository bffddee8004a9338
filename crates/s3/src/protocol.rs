//! The verbs of the protocol, over what buckets hold.

use crate::content::Content;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, DeletedObject,
    GetObjectInput, GetObjectOutput, HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput,
    ListObjectsV2Input, ListObjectsV2Output, Object, PutObjectInput, PutObjectOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most objects in a page, as the protocol has it.
const PAGE: usize = 1000;

pub(crate) struct Buckets(pub(crate) BTreeMap<String, Arc<dyn Content>>);

impl Buckets {
    fn of(&self, bucket: &str) -> S3Result<&dyn Content> {
        self.0.get(bucket).map(AsRef::as_ref).ok_or_else(|| s3_error!(NoSuchBucket))
    }
}

fn length(size: usize) -> Option<i64> {
    i64::try_from(size).ok()
}

#[async_trait]
impl S3 for Buckets {
    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.of(&request.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let mut object = self.of(&request.input.bucket)?.get(&request.input.key).await?;
        let mut content_range = None;
        if let Some(range) = &request.input.range {
            let whole = object.len();
            let range = range.check(whole as u64)?;
            content_range = Some(format!("bytes {}-{}/{whole}", range.start, range.end - 1));
            object = part(&object, &range)?;
        }
        Ok(S3Response::new(GetObjectOutput {
            content_length: length(object.len()),
            content_range,
            body: Some(s3s::Body::from(object).into()),
            ..Default::default()
        }))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let size = self.of(&request.input.bucket)?.size(&request.input.key).await?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: i64::try_from(size).ok(),
            ..Default::default()
        }))
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let input = request.input;
        let bucket = self.of(&input.bucket)?;
        let mut content = BytesMut::new();
        if let Some(mut body) = input.body {
            while let Some(part) = body.next().await {
                content.extend_from_slice(&part.map_err(|_| s3_error!(IncompleteBody))?);
            }
        }
        bucket.put(&input.key, content.freeze(), input.if_none_match.is_some()).await?;
        Ok(S3Response::new(PutObjectOutput::default()))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.of(&request.input.bucket)?.delete(&request.input.key).await?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let bucket = self.of(&request.input.bucket)?;
        let mut deleted = Vec::new();
        for object in request.input.delete.objects {
            bucket.delete(&object.key).await?;
            deleted.push(DeletedObject { key: Some(object.key), ..Default::default() });
        }
        Ok(S3Response::new(DeleteObjectsOutput { deleted: Some(deleted), ..Default::default() }))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        let bucket = self.of(&input.bucket)?;
        if input.delimiter.is_some() {
            return Err(s3_error!(NotImplemented, "listing by folder is not served; list by prefix"));
        }
        let prefix = input.prefix.unwrap_or_default();
        let after = input.continuation_token.or(input.start_after).unwrap_or_default();
        let wanted = input.max_keys.and_then(|most| usize::try_from(most).ok()).unwrap_or(PAGE).min(PAGE);
        let listed = bucket.list(&prefix, &after, wanted).await?;
        let last = listed.objects.last().map(|(key, _)| key.clone());
        let contents: Vec<Object> = listed
            .objects
            .into_iter()
            .map(|(key, size)| Object {
                key: Some(key),
                size: i64::try_from(size).ok(),
                ..Default::default()
            })
            .collect();
        Ok(S3Response::new(ListObjectsV2Output {
            key_count: i32::try_from(contents.len()).ok(),
            contents: Some(contents),
            is_truncated: Some(listed.more),
            next_continuation_token: last.filter(|_| listed.more),
            prefix: Some(prefix),
            ..Default::default()
        }))
    }
}

fn part(object: &Bytes, range: &std::ops::Range<u64>) -> S3Result<Bytes> {
    let bounds = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    let (start, end) = bounds.ok_or_else(|| s3_error!(InvalidRange))?;
    Ok(object.slice(start..end))
}
