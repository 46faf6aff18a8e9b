import jax.numpy as jnp
import numpy as np

from jaxsim.math.worlds import merge_worlds, split_worlds

X = jnp.arange(24.0).reshape(4, 3, 2)  # four of the batch, two worlds before it


def test_merged_worlds_come_apart_again():
    merged = merge_worlds(X, batched=True, size=4, width=2)
    assert merged.shape == (3, 8)
    np.testing.assert_array_equal(split_worlds(merged, 4), X)


def test_what_no_world_varies_keeps_one_entry():
    assert merge_worlds(X[0, :, :1], batched=False, size=4, width=2).shape == (3, 1)


def test_what_differed_before_the_batch_is_repeated_in_the_order_of_the_merged_worlds():
    shared = merge_worlds(X[0], batched=False, size=4, width=2)
    given = merge_worlds(jnp.broadcast_to(X[0], X.shape), batched=True, size=4, width=2)
    np.testing.assert_array_equal(shared, given)


def test_what_varies_in_the_batch_alone_is_given_to_each_world_before_it():
    merged = merge_worlds(X[..., :1], batched=True, size=4, width=2)
    np.testing.assert_array_equal(split_worlds(merged, 4), np.repeat(X[..., :1], 2, axis=-1))
