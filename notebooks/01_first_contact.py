# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # First contact
#
# A cube slides over the floor and friction stops it. How fast must it start to stop exactly at a mark one metre
# away? Gradients through the contact answer: the speed is **3.157 m/s**, within 0.01.

# %%
import jax
import jax.numpy as jnp
import optax

import jaxsim as js

jax.config.update("jax_enable_x64", True)  # before any array is made

# %% [markdown]
# ## A scene
#
# Actors have a shape, a mass and a contact material. `build` turns them into a `Model` (what stays) and a `State`
# (what moves). The cube starts 1.1 mm deep, where the soft contact of its lower face carries its weight.

# %%
material = js.ContactParams(penalty_coefficient=1e8, coulomb_friction_coefficient=0.5, friction_falloff_vel=0.01)
scene = js.Scene(gravity=(0.0, 0.0, -9.81))
scene.add_plane(contact=material)
cube = scene.add_rigid(js.Box((0.05, 0.05, 0.05)), mass=1.0, position=(0, 0, 0.04888), contact=material, name="cube")
model, state = scene.build()

# %% [markdown]
# ## A rollout
#
# One hundred steps of 10 ms, as a function of the initial speed.


# %%
@jax.jit
def slide(speed):
    start = js.set_velocity(model, state, cube, linear=jnp.stack([speed, 0.0, 0.0]))
    return js.rollout(model, start, None, 0.01, js.SolverParams.gradient(), steps=100)


final, trajectory = slide(jnp.array(1.0))
print("at 1 m/s it stops at x =", js.com_position(model, final, cube)[0])
trajectory.plot()

# %%
trajectory.show()

# %% [markdown]
# ## The gradient does the aiming
#
# The loss is the squared distance to the mark. `js.gradient_check` compares its gradient with finite differences, and
# L-BFGS needs about ten iterations. Backward Euler applies the friction of the end of each step, so that the cube stops
# after $v^2 / 2 \mu g - v h / 2$; setting this to one metre gives 3.157 m/s.


# %%
def loss(speed):
    final, trajectory = slide(speed)
    return (js.com_position(model, final, cube)[0] - 1.0) ** 2, trajectory


print(js.gradient_check(loss, 1.0, has_aux=True))
result = js.optimize(loss, 1.0, optax.lbfgs(), steps=30, tolerance=1e-12, progress=False, has_aux=True)
print(result)
print("initial speed:", result.best)

# %%
result.aux.show()

# %% [markdown]
# The number that the text claims:

# %%
assert abs(float(result.best) - 3.157) < 0.01
