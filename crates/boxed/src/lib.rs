//! `#[boxed]` for an `impl` block: its public async functions return boxed futures.
//!
//! The compiler makes code for an async function's body in every crate that awaits it. Verbs are awaited by five crates and
//! their tests, and a body brings all that it awaits along: boxed, each is compiled once, in its own crate, for one
//! allocation a call.

use proc_macro::TokenStream;
use quote::{format_ident, quote};
use syn::visit_mut::{VisitMut, visit_type_reference_mut};
use syn::{FnArg, ImplItem, ImplItemFn, ItemImpl, Lifetime, ReturnType, Type, TypeReference, Visibility, parse_quote};

/// Boxes the futures of the block's public async functions. Those with `impl Trait` arguments or type parameters stay as
/// they are: what they are called with is known to their callers alone.
#[proc_macro_attribute]
pub fn boxed(_: TokenStream, item: TokenStream) -> TokenStream {
    let mut block = syn::parse_macro_input!(item as ItemImpl);
    for item in &mut block.items {
        if let ImplItem::Fn(function) = item
            && function.sig.asyncness.is_some()
            && !matches!(function.vis, Visibility::Inherited)
            && function.sig.generics.type_params().next().is_none()
            && !has_impl_trait(function)
        {
            box_future(function);
        }
    }
    quote!(#block).into()
}

fn has_impl_trait(function: &ImplItemFn) -> bool {
    struct Finder(bool);
    impl VisitMut for Finder {
        fn visit_type_impl_trait_mut(&mut self, _: &mut syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut finder = Finder(false);
    finder.visit_signature_mut(&mut function.sig.clone());
    finder.0
}

/// Gives names to the lifetimes that a signature leaves out.
#[derive(Default)]
struct Names {
    given: Vec<Lifetime>,
    /// Lifetime that an elided one in the result stands for.
    of_receiver: Option<Lifetime>,
}

impl Names {
    fn next(&mut self) -> Lifetime {
        if let Some(receiver) = &self.of_receiver {
            return receiver.clone();
        }
        let name = format_ident!("argument{}", self.given.len());
        let lifetime = Lifetime { apostrophe: proc_macro2::Span::call_site(), ident: name };
        self.given.push(lifetime.clone());
        lifetime
    }
}

impl VisitMut for Names {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        if reference.lifetime.is_none() {
            reference.lifetime = Some(self.next());
        }
        visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = self.next();
        }
    }
}

fn box_future(function: &mut ImplItemFn) {
    let mut names = Names::default();
    let mut receiver = None;
    for input in &mut function.sig.inputs {
        match input {
            FnArg::Receiver(this) => {
                if let Some((_, lifetime)) = &mut this.reference {
                    let name = lifetime.get_or_insert_with(|| names.next());
                    receiver = Some(name.clone());
                    let mutability = this.mutability;
                    *this.ty = parse_quote!(&#name #mutability Self);
                }
            }
            FnArg::Typed(argument) => names.visit_type_mut(&mut argument.ty),
        }
    }
    names.of_receiver = receiver.or_else(|| names.given.first().cloned());
    let output: Type = match &mut function.sig.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, output) => {
            names.visit_type_mut(output);
            (**output).clone()
        }
    };
    let generics = &mut function.sig.generics;
    for lifetime in generics.lifetimes_mut() {
        lifetime.bounds.push(parse_quote!('future));
    }
    generics.params.insert(0, parse_quote!('future));
    for (at, name) in names.given.iter().enumerate() {
        generics.params.insert(at + 1, parse_quote!(#name: 'future));
    }
    let body = &function.block;
    function.block = parse_quote!({
        ::std::boxed::Box::pin(async move {
            // Tells the compiler what it returns, which it cannot see through the box.
            if let ::core::option::Option::Some(output) = ::core::option::Option::None::<#output> {
                return output;
            }
            #body
        })
    });
    function.sig.asyncness = None;
    function.sig.output = parse_quote!(-> ::futures::future::BoxFuture<'future, #output>);
    function.attrs.push(parse_quote!(#[allow(clippy::needless_lifetimes, clippy::unused_async, unreachable_code)]));
}
